"""The web server: uvicorn with h11, the parser that the extra brings and the tests use, and with an end to its patience."""

import asyncio
from typing import Any

from gramfold.imports import require
from gramfold.serving.limits import SECONDS

CONNECTIONS = 256
"""Open at once; who comes later is shut out until one ends."""
MOST_HEADER = 16 * 1024


def server_of(app: Any, host: str, port: int) -> Any:
    """A uvicorn server for an application, ready to run."""
    uvicorn = require("uvicorn", "serve", "serving heads")
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", http=_protocol(), ws="none", timeout_keep_alive=5, server_header=False,
        h11_max_incomplete_event_size=MOST_HEADER,
    )  # fmt: skip
    return uvicorn.Server(config)


def _protocol() -> type[asyncio.Protocol]:
    """uvicorn's protocol with a time limit for every request to come in whole: it waits for half a header for ever."""
    require("h11", "serve", "serving heads")
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > CONNECTIONS:
                transport.abort()
                return
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            super().connection_lost(exc)

        def _watch(self) -> None:
            """The time runs while a request is coming in."""
            if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED):
                self._rest()
            elif self.timer is None:
                self.timer = self.loop.call_later(SECONDS, self.transport.abort)

        def _rest(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return Impatient
