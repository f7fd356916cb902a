"""A headless Chromium, driven over a pipe by its own protocol: no package and no open port."""

import base64
import io
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PHONE, LAPTOP, PAPER = (375, 740), (1280, 900), (794, 1123)
"""Sizes of windows in CSS pixels; the last is a sheet of A4."""


class Browser:
    """One page at a time. `complaints` are the errors that the page's script and the console had."""

    def __init__(self, profile: Path) -> None:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        if found is None:
            pytest.skip("no chromium on this machine")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'  # it reads from descriptor 3 and writes to 4
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "-", found, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._numbers, self._rest, self._session = itertools.count(1), b"", None
        self.complaints: list[str] = []
        self._happened: set[str] = set()
        page = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(30)
        os.close(self._in)
        os.close(self._out)

    # --- the protocol ---

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._in, 1 << 20)
            assert got, "the browser is gone"
            self._rest += got
        one, self._rest = self._rest.split(b"\0", 1)
        answer = json.loads(one)
        said = answer.get("params", {})
        self._happened.add(answer.get("method", ""))
        if answer.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"].get("exception", said["exceptionDetails"])))
        elif answer.get("method") == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(said["entry"]["text"])
        elif answer.get("method") == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(said["args"]))
        return answer

    # --- what people do ---

    def open(self, page: Path, fragment: str = "", size: tuple[int, int] = LAPTOP) -> None:
        self.resize(size)
        for url in ("about:blank", page.as_uri() + fragment):  # another fragment alone would not load the page anew
            self._happened.clear()
            self.call("Page.navigate", url=url)
            while "Page.loadEventFired" not in self._happened:
                self._read()

    def resize(self, size: tuple[int, int]) -> None:
        width, height = size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def prefers(self, scheme: str) -> None:
        """The reader's system is "light" or "dark"."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def paper(self, on: bool = True) -> None:
        """Show the page as it would be printed."""
        self.call("Emulation.setEmulatedMedia", media="print" if on else "")
        self.run(f"void dispatchEvent(new Event('{'before' if on else 'after'}print'))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the mouse there, and perhaps click."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def shot(self, whole: bool = False) -> bytes:
        """What is to be seen, as PNG; `whole`: down to the end of the page."""
        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._all(whole))["data"]
        )

    def _all(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])


def pixels(png: bytes) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("L"))
