"""Damage to everything that is written or sent: what it is read as must be our error, or what it was.

A specimen is a file or a message, and how it is read and used. Three kinds of damage: bytes changed; cut off or spliced; and its
JSON (a packet's header and metadata, a record) changed somewhere with the checksum made right again, as only malice does. After
the first two the outcome is a GramfoldError or an equal object. After the third it is a GramfoldError, when it is read or when it
is used, or an object that works. Nothing takes long or much memory.
"""

import asyncio
import io
import json
import random
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramfold as gf
from gramfold import uploads, wire
from gramfold.cli.main import main
from gramfold.engines.checkpoint import Checkpoint
from gramfold.engines.events import Event
from gramfold.errors import MALFORMED
from gramfold.federation import Samples, load_npz
from gramfold.federation.given import ClientArrays
from gramfold.methods import ClientData, Method
from gramfold.remote import diary, erasure, places, register, release, run, state
from gramfold.remote.ledger import Ledger, SentUpload
from gramfold.remote.tasks import task_from_json, task_to_json
from gramfold.results.folder import page, read_page, seeds_page, write_page
from gramfold.serving.app import load_heads, make_app
from gramfold.uploads import GroupedMoments, NamedSums, PerClient
from gramfold.wire import Packet
from gramfold.wire.packet import _AT, _sealed
from gramfold.wire.record import Record
from report_cases import BENCH

MOST_SECONDS, MOST_BYTES = 2.0, 2**30


@dataclass(frozen=True)
class Specimen:
    """`read` makes an object of bytes. `use` works with it and returns what must be equal for equal objects."""

    name: str
    data: bytes
    read: Callable[[bytes], Any]
    use: Callable[[Any], Any]
    kind: str = "packet"
    """What its structure is: a packet, json, sealed json, or an npz file, which has a checksum of its own."""


@dataclass
class Account:
    """What became of mutations."""

    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def report(self) -> dict[str, Any]:
        return {**self.outcomes, "violations": len(self.violations), "slowest_seconds": round(self.slowest, 3)}


def fuzz(specimens: list[Specimen], mutations: int, seed: int = 0) -> Account:
    """Mutate the specimens in turn, so many times in all."""
    account, rng = Account(), random.Random(seed)
    expected = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for specimen in specimens:
            expected[specimen.name] = specimen.use(specimen.read(specimen.data))
        for number in range(mutations):
            specimen = specimens[number % len(specimens)]
            how, data = mutated(specimen, rng)
            _try(specimen, how, data, expected[specimen.name], account, f"{specimen.name} {how} #{number}")
    return account


def _try(specimen: Specimen, how: str, data: bytes, expected: Any, account: Account, label: str) -> None:
    begun, memory = time.perf_counter(), _peak()
    try:
        found = specimen.use(specimen.read(data))
    except gf.GramfoldError:
        account.outcomes["refused"] += 1
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        account.violations.append(f"{label}: {type(error).__name__} in {place.name}: {error}"[:300])
    else:
        if _same(found, expected):
            account.outcomes["unchanged"] += 1
        elif how == "structure" or specimen.kind == "json":
            account.outcomes["another valid object"] += 1
        else:
            account.violations.append(f"{label}: silently another object")
    seconds, grown = time.perf_counter() - begun, _peak() - memory
    account.slowest = max(account.slowest, seconds)
    if seconds > MOST_SECONDS or grown > MOST_BYTES:
        account.violations.append(f"{label}: {seconds:.1f} s, {grown / 2**20:.0f} MB")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)  # safetensors keeps no order
    return type(a) is type(b) and bool(a == b)


# --- damage ---


def mutated(specimen: Specimen, rng: random.Random) -> tuple[str, bytes]:
    how = rng.choice(("bytes", "length", "structure", "structure"))
    if how == "structure" and specimen.kind != "npz":
        return how, _restructured(specimen, rng)
    if how == "length":
        return how, _resized(specimen.data, rng)
    return "bytes", _flipped(specimen.data, rng)


def _flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        early = rng.random() < 0.5  # where headers are
        changed[rng.randrange(min(len(data), 400) if early else len(data))] ^= rng.randrange(1, 256)
    return bytes(changed)


def _resized(data: bytes, rng: random.Random) -> bytes:
    at, other = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return rng.choice((data[:at], data[at:], data[:at] + data[other:], data + data[at:other], data[:other] + data[at:]))


def _restructured(specimen: Specimen, rng: random.Random) -> bytes:
    if specimen.kind == "sealed":
        changed = _changed({k: v for k, v in json.loads(specimen.data).items() if k != wire.CHECKSUM}, rng)
        if rng.random() < 0.1 or not isinstance(changed, dict):
            return _dump(changed).encode(errors="surrogatepass")  # without a checksum
        try:
            return _dump(wire.sealed(changed)).encode(errors="surrogatepass")
        except ValueError:  # numbers that nobody could seal
            return _dump(changed).encode(errors="surrogatepass")
    if specimen.kind == "json":
        lines = specimen.data.decode().splitlines()
        at = rng.randrange(len(lines))
        lines[at] = _dump(_changed(json.loads(lines[at]), rng)) if specimen.name.endswith("l") else lines[at]
        if not specimen.name.endswith("l"):
            return _dump(_changed(json.loads(specimen.data), rng)).encode(errors="surrogatepass")
        return "\n".join(lines).encode(errors="surrogatepass")
    size = int.from_bytes(specimen.data[:8], "little")
    header, content = json.loads(specimen.data[8 : 8 + size]), specimen.data[8 + size :]
    about = header["__metadata__"]
    checksum = about.pop("sha256")
    if rng.random() < 0.75:
        about["meta"] = _dump(_changed(json.loads(about["meta"]), rng))
    else:
        header = _changed(header, rng)
    about = header.get("__metadata__") if isinstance(header, dict) else None
    if isinstance(about, dict):
        header = {"__metadata__": {"sha256": checksum, **about}, **{k: v for k, v in header.items() if k != "__metadata__"}}
    text = _dump(header, (",", ":")).encode(errors="surrogatepass")
    text += b" " * (-len(text) % 8)
    return _sealed(len(text).to_bytes(8, "little") + text, [content]) + content if len(text) > _AT.stop else text


def _dump(value: Any, separators: tuple[str, str] | None = None) -> str:
    return json.dumps(value, separators=separators, ensure_ascii=random.Random(len(str(value))).random() < 0.5)


ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 255, 2**31, 2**53, 2**63, 2**64, 10**30, -(2**63), 10**400, 0.5, -0.0, 1e-320, 1e308, -1e308,
    float("nan"), float("inf"), "", "x", "0", "\ud800", "\x00", "../../etc/passwd", "a" * 5000, "drawn", "array", [], {}, [[]],
    [None], {"": 0}, [0] * 1000, {"kind": "drawn"}, {"array": "x"}, {"map": {}},
)  # fmt: skip


def _changed(tree: Any, rng: random.Random) -> Any:
    """The tree with something changed at one or two places."""
    for _ in range(rng.choice((1, 1, 2))):
        spots = list(_spots(tree))
        if not spots:
            return rng.choice(ODD)
        holder, key = rng.choice(spots)
        what = rng.randrange(6)
        if what == 0:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[rng.choice(("x", "", "map", "array", "record", str(key) + "s"))] = holder.pop(key)
        elif what == 2:
            other, there = rng.choice(spots)
            holder[key] = json.loads(json.dumps(other[there]))
        elif what == 3 and isinstance(holder[key], int | float) and abs(holder[key]) < 1e18:
            holder[key] = holder[key] * rng.choice((-1, 2, 1000)) + rng.choice((-1, 0, 1, 0.5))
        elif what == 4 and isinstance(holder, list):
            holder.insert(key, rng.choice(ODD))
        else:
            holder[key] = rng.choice(ODD)
        tree = json.loads(json.dumps(tree))
    return tree


def _spots(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from _spots(tree[key])


# --- everything that we write ---


def specimens(folder: Path) -> list[Specimen]:
    """One of every kind; `folder` is for those that are read from a file."""
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    clients: dict[str, ClientArrays] = {name: (X[k::3], codes[k::3]) for k, name in enumerate(("north", "south", "west"))}
    federation = gf.Federation.from_clients(clients)
    return [
        *_moments(X, codes), *_uploads(X, codes), *_models(folder, federation), *_runs(folder, federation),
        *_records(folder, federation), *_data(folder, X, codes), *_commands(folder, federation), *_questions(folder, federation),
    ]  # fmt: skip


def at(folder: Path, name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Bytes as a file of this name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)

    def from_file(data: bytes) -> Any:
        path.write_bytes(data)
        return read(path)

    return from_file


def _packed(packet: Packet) -> list[Any]:
    return [dict(packet.meta), {name: np.asarray(array) for name, array in packet.arrays.items()}]


def _moments(X: np.ndarray, codes: np.ndarray) -> Iterator[Specimen]:
    made = {
        "factor": gf.Moments.from_features(X[:3], codes[:3], classes=3),
        "triangle": gf.Moments.from_features(X, codes, classes=["a", "b", "c"], fingerprint="f"),
        "regression": gf.Moments.from_features(X, X[:, :2]),
        "weights": gf.Moments.from_features(X, codes, classes=3, weights=np.linspace(0.5, 2, 60)),
        "none": gf.Moments(4, 3, labels=(0, 1, 2)),
    }
    for name, moments in made.items():
        exact = name != "weights"

        def read(data: bytes, exact: bool = exact) -> gf.Moments:
            return gf.Moments.unpack(Packet.from_bytes(data), exact_counts=exact)

        yield Specimen(f"moments/{name}", moments.pack().to_bytes(), read, lambda found: _packed((found + found).pack()))


def _uploads(X: np.ndarray, codes: np.ndarray) -> Iterator[Specimen]:
    moments = [gf.Moments.from_features(X[k::2], codes[k::2], classes=3) for k in range(2)]
    made: dict[str, Any] = {
        "grouped": GroupedMoments(dict(enumerate(moments)), ("", "")),
        "named": NamedSums({"w": X[:4], "b": X[0]}),
        "per-client": PerClient({"north": {"w": X[:4]}}),
    }
    for name, upload in made.items():

        def use(found: Any) -> Any:
            twin = found.copy()
            if not isinstance(found, PerClient):
                twin += found
            return _packed(twin.pack())

        yield Specimen(f"upload/{name}", upload.pack().to_bytes(), lambda data: uploads.unpack(Packet.from_bytes(data)), use)


METHODS: tuple[Method, ...] = (
    gf.AFL(), gf.PACE(features="bias+linear+fourier:8", refinement="relu:8"), gf.FedHiP(at="server"),
    gf.FedHiP(), gf.FedHiP(at="server"), gf.APFL(), gf.Local(), gf.DeepAFL(depth=1),
)  # fmt: skip


IMAGES: tuple[Method, ...] = (
    gf.FedACnnL(network="conv:4:3+relu+max:2+dense:6+relu", penalty=0.5),
    gf.PaceCNN(network="pad:1+contrast+conv:3:3:12+split:0.3+grid:2"),
)
TABLES: tuple[Method, ...] = (gf.PACE(features="columns+bias+linear+fourier:8@learned:1", refinement="relu:8"),)
GRADIENT: tuple[Method, ...] = (gf.FedAvg(rounds=2, lr=0.1, epochs=1), gf.FedPCL(rounds=2, lr=0.1, epochs=1))


def _pictures() -> gf.Federation:
    rng = np.random.default_rng(1)
    images, codes = rng.integers(0, 255, (48, 8, 8, 2)).astype(np.uint8), rng.integers(0, 3, 48)
    return gf.Federation.from_clients({name: (images[k::3], codes[k::3]) for k, name in enumerate(("north", "south", "west"))})


def _values() -> gf.Federation:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 3))
    y = np.sin(2 * X[:, 0]) + np.arange(90) % 3
    return gf.Federation.from_clients({n: (X[k::3], y[k::3]) for k, n in enumerate(("north", "south", "west"))}, regression=True)


def _models(folder: Path, federation: gf.Federation) -> Iterator[Specimen]:
    """Of every method a head, and what it broadcasts first and last; where it answers each client, also such an answer."""
    for number, method in enumerate((*METHODS, *GRADIENT, *IMAGES, *TABLES)):
        clients = _pictures() if method in IMAGES else _values() if method in TABLES else federation
        result, sample = gf.run(method, clients), clients.clients[0].train()
        head, label = result.heads["north"], f"{number}-{method.name}"
        head.save(folder / "head")

        def use(found: gf.Head, inputs: Any = sample.inputs[:2]) -> Any:
            return [np.nan_to_num(np.asarray(found.scores(inputs))), found.predict(inputs), found.method, dict(found.chosen)]

        yield Specimen(f"head/{label}", (folder / "head").read_bytes(), at(folder, "head", gf.load_head), use)
        records = {"begin": method.begin(clients.task), "final": result.run.broadcast}
        if method.answer is not None:
            records["reply"] = method.answer(method.local(ClientData("north", sample), records["begin"]), records["final"])
        for what, record in records.items():
            yield Specimen(f"broadcast/{label}-{what}", record.pack().to_bytes(), _read_record, _use_record)
        if method in TABLES:  # the round of the moments, after those in which the map is learned
            revisable = method.revisable(result.run.broadcast)
            assert revisable is not None
            records["begin"] = revisable.again(clients.task)
        if method not in GRADIENT:
            at_site = partial(_use_at_site, method, sample)
            yield Specimen(f"at a site/{label}", records["begin"].pack().to_bytes(), _read_record, at_site)


def _read_record(data: bytes) -> Record:
    return Record.unpack(Packet.from_bytes(data))


def _use_at_site(method: Method, sample: Samples, found: Record) -> Any:
    """What a site computes from a broadcast. Whatever goes wrong there, it answers with words: what counts is time and memory."""
    try:
        return _packed(method.local(ClientData("north", sample), found).pack()) if method.rounds else None
    except MALFORMED as error:
        raise gf.GramfoldError(str(error)) from None


def _use_record(found: Record) -> Any:
    return [type(found).__name__, *_packed(found.pack())]


def _runs(folder: Path, federation: gf.Federation) -> Iterator[Specimen]:
    place = folder / "run"
    gf.run(gf.PACE(features="bias+linear"), federation).save(place)

    def read_run(_: Path) -> gf.Result:
        return gf.load_result(place)

    def use_run(found: gf.Result) -> Any:
        assert found.run is not None
        sent = found.run.broadcast.pack()
        return [
            found.to_dict(),
            None if found.run.total is None else _packed(found.run.total.pack()),
            sent.meta,
            sent.digest(),
            found.run.task,
            dict(found.run.samples),
        ]

    yield Specimen("run", (place / "run.safetensors").read_bytes(), at(place, "run.safetensors", read_run), use_run)

    method = gf.FedAvg(rounds=2, lr=0.1, epochs=1)
    gf.run(method, federation, checkpoint=folder / "checkpoint")
    checkpoint = Checkpoint(folder / "checkpoint", method, federation)

    def use_checkpoint(found: Any) -> Any:
        return [found.state.round, dict(found.state.uplink), found.state.broadcast.pack().digest(), sorted(found.memories)]

    data = (folder / "checkpoint" / "fedavg.safetensors").read_bytes()
    yield Specimen(
        "checkpoint", data, at(folder / "checkpoint", "fedavg.safetensors", lambda _: checkpoint.load()), use_checkpoint
    )

    ledger = Ledger()
    for client in federation:
        train = client.train()
        moments = gf.Moments.from_features(train.inputs, train.targets, classes=3)
        ledger.add(SentUpload(moments, {client.name: 1}, site=client.name, upload_id="0" * 32, digest=moments.pack().digest()))
    ledger.save(folder / "fold", "session", task_to_json(federation.task))

    def read_ledger(path: Path) -> Any:
        return Ledger.load(path, "session", None), Ledger.open(path, None)[1]

    def use_ledger(found: Any) -> Any:
        return [found[0].total.pack().digest(), found[0].counted, found[0].digests, found[0].samples, found[0].id, found[1]]

    yield Specimen("ledger", (folder / "fold").read_bytes(), at(folder, "fold", read_ledger), use_ledger)


def _records(folder: Path, federation: gf.Federation) -> Iterator[Specimen]:
    def of(name: str, value: Any, read: Callable[[Path], Any], sealed: bool = True) -> Specimen:
        lines = value if isinstance(value, list) else [value]
        seal = wire.sealed if sealed else dict
        data = "".join(json.dumps(seal(line)) + "\n" for line in lines).encode()
        return Specimen(f"record/{name}", data, at(folder / "records", name, read), lambda found: found, "json")

    place = folder / "records"
    yield of(
        "released.json", {"uploads": {"north": "1", "south": "2"}}, lambda _: release.check_release(place, {"north": "1"}, 1)
    )
    places_file = {"sums": [["sum", ["a", "b"]]]}
    yield of("places.json", places_file, lambda _: sorted(places.needed(place, "other", "c", [], ["a", "b", "c"])))
    yield of("site.json", {"site": "north"}, state._owner)
    forgotten = [{"site": "north", "time": "now", "left": ["south"]}] * 2
    yield of("forgotten.jsonl", forgotten, lambda _: _erased(erasure.Forgotten(place)))
    marks = [{"time": "now", "marks": ["0" * 64, "1" * 64]}]
    yield of("gramfold-forgotten.jsonl", marks, lambda _: sorted(register.read(place / "out")._marks))
    yield of("sent.jsonl", [{"upload": "1", "bytes": 3}, {"refused": "no"}], lambda _: sorted(diary.released(place)))
    events = [json.loads(Event("local", 1, 2, "north").to_json())]
    read_events: Callable[[Path], Any] = lambda path: [  # noqa: E731
        Event.from_json(line) for line in path.read_text(errors="replace").splitlines()
    ]
    yield of("events.jsonl", events, read_events, sealed=False)
    task = json.loads(task_to_json(federation.task))
    yield of("task", task, lambda path: task_from_json(path.read_text(errors="replace")), sealed=False)
    outcome = {
        "gramfold": "0",
        "format": 1,
        "seed": 0,
        "methods": [],
        "sites": {"answered": ["north"], "excluded": {"west": "late"}},
    }
    yield of("result.json", outcome, lambda _: [read_page(place), run.outcome(place)])


def _erased(found: erasure.Forgotten) -> Any:
    return [found.times, found.hashes()]


# --- pages, questions and commands ---


def _command(target: Path | None, *arguments: str) -> Any:
    """What a command says and writes; its own one-line error as ours, and anything else as it is."""
    said, complained = io.StringIO(), io.StringIO()
    if target is not None:
        target.unlink(missing_ok=True)
    with redirect_stdout(said), redirect_stderr(complained), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["gramfold", *arguments])
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code or 0
    if code == 2:
        lines = [line for line in complained.getvalue().splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1, lines
        assert lines[0].startswith("error: "), lines
        raise gf.GramfoldError(lines[0])
    assert code == 0, complained.getvalue()
    return [said.getvalue(), target.read_text(encoding="utf-8") if target is not None else ""]


def _commands(folder: Path, federation: gf.Federation) -> Iterator[Specimen]:
    """Commands that read files of others: reports of all kinds, by themselves and beside each other, predictions, a run's end."""
    place = folder / "commands"
    results = [gf.run(method, federation) for method in (gf.AFL(), gf.PACE(features="bias+linear"))]
    about = {"engine": "inprocess", **federation.description, "labels": federation.label_counts()}
    pages = [page(results, seed=seed, **about, sites={"answered": ["north"], "excluded": {}}) for seed in (0, 1)]
    compared = gf.compare(["afl", "local"], (np.eye(40)[:, :4], np.arange(40) % 3), seeds=2, clients=2, partition="iid")
    contents = {"run": pages[0], "seeds": seeds_page(pages, compared.to_dict())}
    write_page(place / "other", pages[0])
    for name, content in contents.items():
        write_page(place / name, content)
        data, html = (place / name / "result.json").read_bytes(), place / f"{name}.html"
        alone, both = ("report", str(place / name)), ("report", str(place / name), str(place / "other"))
        for what, arguments in (("alone", alone), ("beside another", both)):
            run_it = partial(_called, place / name / "result.json", html, (*arguments, "--out", str(html)))
            yield Specimen(f"report of {name} {what}", data, run_it, lambda found: found, "sealed")
    end = partial(_called, place / "run" / "result.json", None, ("flower", "outcome", str(place / "run")))
    yield Specimen("flower outcome", wire.read(place / "run" / "result.json"), end, lambda found: found, "sealed")
    (place / "bench.json").write_text(json.dumps(BENCH))
    bench = partial(
        _called, place / "bench.json", place / "b.html", ("report", str(place / "bench.json"), "--out", str(place / "b.html"))
    )
    yield Specimen("report of a bench", wire.read(place / "bench.json"), bench, lambda found: found, "json")
    head, samples, table = place / "head.safetensors", place / "samples.npz", place / "table.csv"
    results[1].heads["north"].save(head)
    np.savez(samples, features=federation.clients[0].test().inputs)
    predict = ("predict", str(head), str(samples), "--out", str(table), "--every-class")
    yield Specimen("predict", wire.read(head), partial(_called, head, table, predict), lambda found: found)


def _called(file: Path, target: Path | None, arguments: tuple[str, ...], data: bytes) -> Any:
    file.write_bytes(data)
    return _command(target, *arguments)


def _questions(folder: Path, federation: gf.Federation) -> Iterator[Specimen]:
    """Requests to `gramfold serve`: whatever comes, the answer is a prediction or says what is wrong with it."""
    path = folder / "served.safetensors"
    gf.run(gf.PACE(features="bias+linear"), federation).heads["north"].save(path)
    app = make_app(load_heads([path]))
    question = json.dumps({"features": federation.clients[0].test().inputs[:3].tolist(), "origin": None}).encode()

    def ask(kind: str, body: bytes) -> Any:
        status, answer = asyncio.run(_request(app, kind, body))
        if status in (400, 411, 413):
            raise gf.GramfoldError(answer["error"])
        assert status == 200, (status, answer)
        return answer

    yield Specimen("question", question, partial(ask, "application/json"), lambda found: found, "json")
    about = b'Content-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png'
    form = b"--b\r\n" + about + b"\r\n\r\nPNG\r\n--b--\r\n"

    def upload(data: bytes) -> str:
        with suppress(gf.GramfoldError):  # this head takes no images: what counts is that the form is read, or refused
            ask("multipart/form-data; boundary=b", data)
        return "read"

    yield Specimen("form", form, upload, lambda found: found, "npz")


async def _request(app: Any, kind: str, body: bytes) -> tuple[int, Any]:
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/predict",
        "raw_path": b"/predict",
        "query_string": b"",
        "headers": headers,
    }
    await app({**scope, "http_version": "1.1", "scheme": "http", "root_path": "", "client": None, "server": None}, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


def _data(folder: Path, X: np.ndarray, codes: np.ndarray) -> Iterator[Specimen]:
    for compressed in (False, True):
        file = io.BytesIO()
        (np.savez_compressed if compressed else np.savez)(file, features=X, labels=codes, classes=np.array(["a", "b", "c"]))

        def use(found: Any) -> Any:
            return [np.asarray(found.inputs), np.asarray(found.targets), list(found.labels)]

        name = "compressed" if compressed else "plain"
        yield Specimen(f"npz/{name}", file.getvalue(), at(folder, f"{name}.npz", load_npz), use, "npz")
