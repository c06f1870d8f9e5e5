"""An event loop in a thread that stands still whenever a judge measures, as the processes of other agents do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_STOP_S = 5.0


class PausableLoop:
    """Implements `arena.agents.base.Pausable`; runs one coroutine. `jobs`: one thread for calls that wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._go_on = threading.Event()
        self._go_on.set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._killed = False
        self.jobs = ThreadPoolExecutor(1, thread_name_prefix="evaluate")

    def run(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what the coroutine returns; None where it was killed. Waits for a call in `jobs` that has begun."""
        try:
            return asyncio.run(self._attached(work))
        except asyncio.CancelledError:
            return None
        finally:
            self.jobs.shutdown(cancel_futures=True)

    async def _attached(self, work: Coroutine[Any, Any, T]) -> T:
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        with self._lock:
            self._loop, self._task = loop, task
            if self._killed:
                task.cancel()
            if not self._go_on.is_set():
                loop.call_soon(self._go_on.wait)
        try:
            return await task
        finally:
            with self._lock:
                self._loop = None

    def pause(self) -> None:
        """Keep the loop from doing anything; what endpoints send meanwhile waits in their connections."""
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            self._go_on.wait()

        with self._lock:
            self._go_on.clear()
            if self._loop is None:
                return
            self._loop.call_soon_threadsafe(stop)
        stopped.wait(_STOP_S)

    def resume(self) -> None:
        """Let it go on."""
        self._go_on.set()

    def kill(self) -> None:
        """Cancel the coroutine, also while it is paused."""
        with self._lock:
            self._killed = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._go_on.set()
