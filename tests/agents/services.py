"""A service that judges nothing: what `./evaluate` and its server are tried with."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from arena.agents.base import Feedback


class FakeService:
    """Answers at once, or when it is let; keeps the kernels that reached it, in order."""

    def __init__(self, answer: Callable[[bytes], Feedback] | None = None) -> None:
        self.kernels: list[bytes] = []
        self.profiled: list[bool] = []
        self.busy = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self._answer = answer or (lambda kernel: feedback("passed", f"judged {kernel.decode()}"))

    def evaluate(self, kernel: bytes, profile: bool = False) -> Feedback:
        self.kernels.append(kernel)
        self.profiled.append(profile)
        self.busy.set()
        assert self.go_on.wait(100)
        return self._answer(kernel)


def feedback(status: str | None, text: str) -> Feedback:
    return Feedback(text + "\n", json.dumps({"status": status, "detail": text}).encode(), None)
