"""A headless Chromium that the tests steer through its DevTools pipe: no socket, no driver, no extra package."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
_ANSWER_S = 60.0


def find_browser() -> str | None:
    """The first browser on PATH."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def find_axe() -> Path | None:
    """The accessibility checks of axe-core (MPL 2.0), as the package that carries them has them; it is not imported."""
    package = importlib.util.find_spec("axe_playwright_python")
    places = package.submodule_search_locations if package is not None else None
    return next((Path(place) / "axe.min.js" for place in places or ()), None)


class Browser:
    """One page at a time; what it wanted from outside, and what its console said, is kept."""

    def __init__(self, program: str, folder: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
            "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank",
        ]  # fmt: skip
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'  # the browser listens on 3 and answers on 4
        self._process = subprocess.Popen(
            ["bash", "-c", script, program, *options],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._count, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.console: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser that was started here."""
        self._process.kill()
        self._process.wait(10)
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """One DevTools call and its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": given}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + _ANSWER_S
        while True:
            answer = self._next(until)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser ended"
            self._rest += piece
        raw, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, given: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Log.entryAdded":
            self.console.append(f"{given['entry']['level']}: {given['entry']['text']}")
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.console.append(f"{method}: {json.dumps(given)[:300]}")

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Show a file at a width, and wait until it is loaded."""
        self.requests, self.console = [], []
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Page.navigate", url=path.as_uri())
        until = time.monotonic() + _ANSWER_S
        while self._next(until).get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def promised(self, expression: str) -> Any:
        """The value that a JavaScript promise of the page comes to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, such as `ArrowRight`."""
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key]
            )

    def picture(self, top: int, height: int, scale: float = 1.0) -> bytes:
        """A PNG of a part of the page."""
        width = self.value("document.documentElement.clientWidth")
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": scale}
        made = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(made["data"])

    def print_pdf(self) -> bytes:
        """The page as it would be printed on A4."""
        made = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(made["data"])
