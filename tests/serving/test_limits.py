"""What a stranger may cost a server: every test here was an attack that took memory or time, or ended in a 500."""

import io
import json
import socket
import struct
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from test_serving import a_png, httpx, photo_heads, served

import gramfold as gf
from gramfold import GramfoldError
from gramfold.errors import ServingError
from gramfold.features import DeepMap, draw, parse
from gramfold.heads import Stream
from gramfold.serving import limits, server
from gramfold.serving.app import load_heads
from gramfold.serving.served import MOST_PARTS, check_parts, check_pixels, read_question

__all__ = ["photo_heads"]
KEY = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def head(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    federation = gf.Federation.split(rng.standard_normal((80, 8)), rng.integers(0, 3, 80), clients=4, partition="iid")
    path = tmp_path_factory.mktemp("head") / "one.safetensors"
    gf.run(gf.AFL(), federation).heads["1"].save(path)
    return path


def raw(address: str, data: bytes, wait: float = 5.0) -> bytes:
    """What the server answers to these bytes, until it hangs up or nothing more comes."""
    host, port = urlsplit(address).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as link:
        try:
            link.sendall(data)
            answer = b""
            while piece := link.recv(65536):
                answer += piece
        except (ConnectionError, TimeoutError):
            pass
        return answer


def post(extra: bytes) -> bytes:
    return b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + extra


def test_a_length_and_chunks_together_are_two_stories(head):
    """The length passed the limit, the chunks went on to 600 MB."""
    with served(head) as address:
        both = post(b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n0\r\n\r\n")
        assert raw(address, both).split(b" ")[1] == b"411"
        chunks = post(b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n0\r\n\r\n")
        assert raw(address, chunks).split(b" ")[1] == b"411"
        assert raw(address, post(b"Content-Length: 99999999999\r\n\r\n")).split(b" ")[1] == b"413"
        assert raw(address, post(b"Content-Length: -5\r\n\r\n")).split(b" ")[1] in (b"400", b"411")


def test_more_than_was_said_is_refused_whatever_the_web_server_lets_through():
    import asyncio

    sent: list[dict] = []

    async def app(scope, receive, send):
        raise AssertionError("not reached")

    async def receive():
        return {"type": "http.request", "body": b"x" * 2**20, "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"host", b"localhost"), (b"content-length", b"100")]}
    tracemalloc.start()
    asyncio.run(limits.Gate(app, limits.LOOPBACK, None)(scope, receive, send))
    assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    tracemalloc.stop()
    assert sent[0]["status"] == 413


def test_json_of_many_parts_or_of_many_lists_is_not_parsed():
    many = b"[" + b"1," * (MOST_PARTS + 1) + b"1]"
    begun = time.perf_counter()
    tracemalloc.start()
    for body in (many, b"[" * 10**6, b'{"a":' * 10**5, b"{}," * MOST_PARTS):
        with pytest.raises(GramfoldError, match=r"more than 2000000|nested deeper than 64"):
            read_question(body)
    assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    tracemalloc.stop()
    assert time.perf_counter() - begun < 5
    check_parts(json.dumps({"texts": ["a [ bracket ( or two ["] * 10}).encode())


def a_bomb(side: int) -> bytes:
    """A grey PNG of so many pixels a side, in a few kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress(bytes(1 + side) * 8, 9)
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_a_small_file_with_many_pixels_is_not_decoded(photo_heads):
    tracemalloc.start()
    with pytest.raises(GramfoldError, match="are more than 40 million"):
        check_pixels(a_bomb(12_000))
    assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    tracemalloc.stop()
    with served(photo_heads[0]) as address:
        answer = httpx.post(f"{address}/predict", files={"image": a_bomb(12_000)})
        assert answer.status_code == 400
        assert "million" in answer.json()["error"]
        assert httpx.post(f"{address}/predict", files={"image": a_png(1)}).status_code == 200


def test_half_a_request_does_not_stay(head, monkeypatch):
    """1,200 of them did, for ever."""
    monkeypatch.setattr(server, "SECONDS", 0.5)
    with served(head) as address:
        host, port = urlsplit(address).netloc.split(":")
        halves = [b"", b"POST /pre", b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf"]
        links = [socket.create_connection((host, int(port)), timeout=5) for _ in range(30)]
        for number, link in enumerate(links):
            link.sendall(halves[number % 3])
        for link in links:
            try:
                while link.recv(4096):
                    pass
            except ConnectionError:
                pass
            link.close()
        keeps = httpx.Client()
        for _ in range(2):
            assert keeps.get(f"{address}/health").status_code == 200
            time.sleep(0.7)  # an idle connection is not half a request
        keeps.close()


def test_only_so_many_connections_are_open(head, monkeypatch):
    monkeypatch.setattr(server, "CONNECTIONS", 5)
    with served(head) as address:
        host, port = urlsplit(address).netloc.split(":")
        links = [socket.create_connection((host, int(port)), timeout=2) for _ in range(5)]
        time.sleep(0.2)
        assert raw(address, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 2.0) == b""
        for link in links:
            link.close()
        time.sleep(0.2)
        assert httpx.get(f"{address}/health").status_code == 200


def test_a_question_that_takes_too_long_gives_up_its_turn(monkeypatch):
    import asyncio

    monkeypatch.setattr(limits, "SECONDS", 0.05)
    sent: list[dict] = []

    async def receive():
        await asyncio.sleep(10)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"host", b"localhost"), (b"content-length", b"100")]}
    asyncio.run(limits.Gate(None, limits.LOOPBACK, None)(scope, receive, send))
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    "content",
    [
        b'{"features": [[1' + b"0" * 400 + b"]]}", b'{"features": [[1e400, 0, 0, 0, 0, 0, 0, 0]]}', b'{"features": [[NaN]]}',
        b'{"features": [[' + b"9" * 5000 + b"]]}", b'{"features": [[1' + b"0" * 400 + b",0,0,0,0,0,0,0]]}", b'{"features": [{}]}',
        b'{"features": [[[]]]}', b'{"features": [null]}', b'{"features": [["a"]]}', b"\xff\xfe", b"", b"null",
        b'{"features": "a"}',        b'{"features": [[true, false, 0, 0, 0, 0, 0, "\\ud800"]]}',
    ],
)  # fmt: skip
def test_numbers_that_are_none_are_the_questions_fault(content, head):
    with served(head) as address:
        answer = httpx.post(f"{address}/predict", content=content)
        assert answer.status_code in (400, 411)
        assert answer.json()["error"]


FORM = "multipart/form-data"
BROKEN = {
    "no boundary": (FORM, b"anything"),
    "an empty boundary": (f"{FORM}; boundary=", b"----\r\n"),
    "another boundary": (f"{FORM}; boundary=a", b"--b\r\nContent-Disposition: form-data; name=image\r\n\r\nx\r\n--b--\r\n"),
    "no name": (f"{FORM}; boundary=a", b"--a\r\nContent-Disposition: form-data\r\n\r\nx\r\n--a--\r\n"),
    "no disposition": (f"{FORM}; boundary=a", b"--a\r\n\r\nx\r\n--a--\r\n"),
    "cut off": (f"{FORM}; boundary=a", b"--a\r\nContent-Disposition: form-data; name=image; filename=x\r\n\r\nx"),
    "bytes": (f"{FORM}; boundary=a", bytes(range(256)) * 10),
    "many fields": (
        f"{FORM}; boundary=a",
        b"".join(b'--a\r\nContent-Disposition: form-data; name="f%d"\r\n\r\nx\r\n' % i for i in range(2000)) + b"--a--\r\n",
    ),
    "a charset of its own": (f"{FORM}; boundary=a; charset=nonsense", b"--a\r\nContent-Disposition: form-data\r\n\r\n--a--"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_form_is_the_questions_fault(what, photo_heads):
    kind, body = BROKEN[what]
    with served(photo_heads[0]) as address:
        answer = httpx.post(f"{address}/predict", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 400
        assert answer.json()["error"]


def test_a_key_is_needed_where_there_is_one(head):
    with served(head, key=KEY) as address:
        for path in ("/", "/health", "/metrics"):
            assert httpx.get(address + path).status_code == 401
        for given in ("Bearer wrong", KEY, f"Bearer {KEY}x", "Bearer", f"bearer{KEY}"):
            assert httpx.get(f"{address}/health", headers={"Authorization": given}).status_code == 401
        assert httpx.get(f"{address}/health", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


def test_a_key_is_in_a_file_and_no_short_one(gramfold, head, tmp_path):
    (tmp_path / "key").write_text("short")
    code, _, error = gramfold("serve", str(head), "--key-file", str(tmp_path / "key"))
    assert code == 2
    assert "at least 16" in error


def test_another_name_for_this_host_is_not_answered(head):
    with served(head) as address:
        port = urlsplit(address).netloc.split(":")[1]
        for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "LOCALHOST", "[::1]"):
            assert httpx.get(f"{address}/health", headers={"Host": host}).status_code == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "", "localhost@evil"):
            assert httpx.get(f"{address}/health", headers={"Host": host}).status_code in (400, 421)
    with served(head, hosts=("heads.example.org",)) as address:
        assert httpx.get(f"{address}/health").status_code == 421
        assert httpx.get(f"{address}/health", headers={"Host": "heads.example.org"}).status_code == 200


def test_figures_for_prometheus(head):
    with served(head) as address:
        httpx.post(f"{address}/predict", json={"features": [[0.0] * 8]})
        httpx.post(f"{address}/predict", content=b"nonsense")
        text = httpx.get(f"{address}/metrics").text
        assert 'gramfold_requests_total{status="200"} 1' in text
        assert 'gramfold_requests_total{status="400"} 1' in text
        assert "gramfold_requests_in_progress 1" in text


def test_a_small_head_that_would_take_much_memory_is_not_served(tmp_path):
    """258 kB were 2 GB: what a map draws is not in the file."""
    wide, base = draw(parse("fourier:20000"), 5000, 0), draw(parse("linear"), 9000, 0)
    deep = DeepMap(
        {"base": base.description, "activation": "relu"}, {"inner.0": np.zeros((9000, 1)), "outer.0": np.zeros((9000, 1))}
    )
    tracemalloc.start()
    maps: list[Any] = [wide, deep]
    for number, map_ in enumerate(maps):
        head = gf.Head([Stream(map_, np.zeros((map_.dim, 1)))], None)
        path = tmp_path / f"{number}.safetensors"
        head.save(path)
        with pytest.raises(ServingError):
            load_heads([path])
    assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    tracemalloc.stop()


def test_many_samples_are_mapped_some_at_a_time(tmp_path):
    rng = np.random.default_rng(0)
    map_ = draw(parse("fourier:2000"), 4, 0)
    head = gf.Head([Stream(map_, rng.standard_normal((map_.dim, 1)))], None)
    head.save(tmp_path / "wide.safetensors")
    (wide,) = load_heads([tmp_path / "wide.safetensors"]).values()
    rows = rng.standard_normal((6000, 4))
    tracemalloc.start()
    found = wide.answer({"features": rows.tolist()})["predictions"]
    assert tracemalloc.get_traced_memory()[1] < 150 * 2**20  # all features at once are 96 MB, three times over
    tracemalloc.stop()
    np.testing.assert_allclose([one["values"] for one in found[::500]], head.scores(rows[::500]), atol=1e-9)


def test_a_picture_that_is_none_is_said():
    with pytest.raises(GramfoldError, match="cannot be read as an image"):
        check_pixels(io.BytesIO(b"GIF89a").getvalue())
