"""Headless Chromium over its DevTools pipe: standard library alone, so that no test needs a driver of its own."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (Debian: apt-get install chromium)")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """One tab. `problems`: errors, warnings and uncaught exceptions that its pages reported."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._buffer = 0, b""
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return dict(answer["result"])

    def open(
        self, path: Path, fragment: str = "", *, width: int = 1280, height: int = 800, dark: bool = False
    ) -> float:
        """Open a file and return the seconds until it was loaded, painted once and idle."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self._events.clear()
        start = time.monotonic()
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._note(self._next())
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return time.monotonic() - start

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._answers, 1 << 20)
            assert data, "Chromium has ended"
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(str(params["args"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(params["entry"]["text"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start Chromium with a profile of its own, and end it."""
    assert CHROMIUM is not None
    theirs_in, commands = os.pipe()
    answers, theirs_out = os.pipe()
    # The pipe is expected at descriptors 3 and 4.
    script = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
    arguments = ["bash", "-c", script, "bash", CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        arguments, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        browser = Browser(commands, answers)
        yield browser
        browser._session = None
        browser.call("Browser.close")
    finally:
        os.close(commands)
        os.close(answers)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
