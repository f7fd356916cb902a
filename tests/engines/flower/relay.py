"""A wire that can be cut: forwards connections to a port until so many bytes have gone up, then goes dead in mid-sentence."""

import socket
import threading
from contextlib import suppress


class Relay:
    """Listens on a port of the loopback while in use. `cut` is set once `limit` bytes have gone up; none go through after."""

    def __init__(self, target: int, limit: float, host: str = "127.0.0.1") -> None:
        self.target, self.left, self.cut = target, limit, threading.Event()
        self._lock, self._sockets = threading.Lock(), []
        self._server = socket.create_server((host, 0))
        self.address = f"{host}:{self._server.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for each in (self._server, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self._sockets += [near, far]
                threading.Thread(target=self._copy, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._copy, args=(far, near, False), daemon=True).start()

    def _copy(self, source, sink, up):
        with suppress(OSError):
            while data := source.recv(16384):
                with self._lock:
                    if up:
                        self.left -= len(data)
                    if self.left < 0:
                        self.cut.set()
                if self.cut.is_set():
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
