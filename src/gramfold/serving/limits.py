"""What anybody who reaches a server may cost it: how much is sent, for how long, how often at once, under which name of the host,
with which key. All of it is decided before anything is parsed, whatever the web server in front has let through."""

import asyncio
import hmac
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 32 * 2**20
"""A question's length."""
SECONDS = 30.0
"""How long a question may take to come in, and to wait for its turn."""
AT_ONCE = 8
"""Questions that are in memory together."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class RefusedError(Exception):
    """A request that goes no further: its status and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Gate:
    """Middleware around an ASGI application, and its figures."""

    def __init__(self, app: App, hosts: Sequence[str], key: str | None) -> None:
        self.app, self.hosts, self.key = app, frozenset(host.lower() for host in hosts), key
        self.answers: Counter[int] = Counter()
        self.seconds = 0.0
        self.received = 0
        self.busy = 0
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begun, self.busy = time.perf_counter(), self.busy + 1

        async def counted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.answers[int(message["status"])] += 1
            await send(message)

        try:
            await self._admit(scope, receive, counted)
        except RefusedError as refused:
            await _refuse(refused, counted)
        finally:
            self.busy -= 1
            self.seconds += time.perf_counter() - begun

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        self._check_host(headers)
        self._check_key(headers)
        length = _length(headers) if scope["method"] not in ("GET", "HEAD") else 0
        if not length:
            await self.app(scope, _given(b""), send)
            return
        try:
            await asyncio.wait_for(self._turns.acquire(), SECONDS)
        except TimeoutError:
            raise RefusedError(503, "too many questions at once; try again later") from None
        try:
            body = await _body(receive, length)
            self.received += len(body)
            await self.app(scope, _given(body), send)
        finally:
            self._turns.release()

    def _check_host(self, headers: dict[bytes, list[bytes]]) -> None:
        """A page of another site that has its name point here must not ask in its visitors' place."""
        if not self.hosts:
            return
        given = headers.get(b"host", [])
        host = given[0].decode("latin-1").lower() if len(given) == 1 else ""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
        if name not in self.hosts:
            raise RefusedError(421, "this server does not answer under that name; see --allow-host")

    def _check_key(self, headers: dict[bytes, list[bytes]]) -> None:
        if self.key is None:
            return
        given = headers.get(b"authorization", [])
        if len(given) != 1 or not hmac.compare_digest(given[0], b"Bearer " + self.key.encode()):
            raise RefusedError(401, "a key is needed: Authorization: Bearer KEY")

    def metrics(self) -> str:
        """Its figures as Prometheus reads them."""
        lines = ["# TYPE gramfold_requests_total counter"]
        lines += [f'gramfold_requests_total{{status="{status}"}} {count}' for status, count in sorted(self.answers.items())]
        lines += ["# TYPE gramfold_request_seconds_total counter", f"gramfold_request_seconds_total {self.seconds:.6f}"]
        lines += ["# TYPE gramfold_received_bytes_total counter", f"gramfold_received_bytes_total {self.received}"]
        lines += ["# TYPE gramfold_requests_in_progress gauge", f"gramfold_requests_in_progress {self.busy}"]
        return "\n".join(lines) + "\n"


def _length(headers: dict[bytes, list[bytes]]) -> int:
    """What a request says of its length, which it must: a length beside chunks, or two of them, would be two stories."""
    said = headers.get(b"content-length", [])
    if len(said) != 1 or b"transfer-encoding" in headers or not (said[0].isdigit() and len(said[0]) < 16):
        raise RefusedError(411, f"a question must say its length, and have no more than {MOST_BYTES >> 20} MB")
    if int(said[0]) > MOST_BYTES:
        raise RefusedError(413, f"a question must say its length, and have no more than {MOST_BYTES >> 20} MB")
    return int(said[0])


async def _body(receive: Receive, length: int) -> bytes:
    """The body, of no more than it said, within the time."""
    pieces: list[bytes] = []
    until, size, more = time.monotonic() + SECONDS, 0, True
    while more:
        try:
            message = await asyncio.wait_for(receive(), max(until - time.monotonic(), 0.01))
        except TimeoutError:
            raise RefusedError(408, f"the question did not come within {SECONDS:g} s") from None
        if message["type"] != "http.request":
            raise RefusedError(400, "the question broke off")
        pieces.append(message.get("body", b""))
        size, more = size + len(pieces[-1]), message.get("more_body", False)
        if size > length:
            raise RefusedError(413, "the question is longer than it said")
    return b"".join(pieces)


def _given(body: bytes) -> Receive:
    """A body that is here already."""
    messages: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


async def _refuse(refused: RefusedError, send: Send) -> None:
    body = json.dumps({"error": str(refused)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    headers += [(b"www-authenticate", b"Bearer")] if refused.status == 401 else []
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
