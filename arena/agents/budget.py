"""What a session used up, against its limits; and a clock that stands still while the agent does."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from arena.agents.base import Pausable
from arena.agents.definition import Price
from arena.results.session import Ending, Event, Limits, Tokens

_MILLION = 1e6


class Reached(NamedTuple):
    """The limit that was reached, and a sentence about it."""

    ending: Ending
    detail: str


@dataclass
class Budget:
    """Adds up what events report. Not thread-safe."""

    limits: Limits
    price: Price | None = None
    tokens: Tokens = field(default_factory=Tokens)
    _reported_usd: float = 0.0

    def add(self, event: Event) -> None:
        """Count one event."""
        self.tokens += event.tokens
        self._reported_usd += event.cost_usd

    @property
    def cost_usd(self) -> float:
        """What the agent reports, else its tokens at the price of its definition; 0 where neither is known."""
        if self._reported_usd or self.price is None:
            return self._reported_usd
        fresh = self.tokens.input - self.tokens.cached
        parts = (
            (fresh, self.price.input),
            (self.tokens.cached, self.price.cached),
            (self.tokens.output, self.price.output),
        )
        return sum(count * usd for count, usd in parts) / _MILLION

    def reached(self, active_s: float, disk_bytes: int) -> Reached | None:
        """The first limit that is reached, or None."""
        limits = self.limits
        if active_s >= limits.wall_clock_s:
            return Reached(Ending.WALL_CLOCK, f"its {limits.wall_clock_s:.0f} s were up")
        if limits.tokens is not None and self.tokens.total > limits.tokens:
            return Reached(Ending.TOKENS, f"{self.tokens.total} tokens, of {limits.tokens}")
        if limits.cost_usd is not None and self.cost_usd > limits.cost_usd:
            return Reached(Ending.COST, f"{self.cost_usd:.2f} US dollars, of {limits.cost_usd:.2f}")
        if disk_bytes > limits.disk_bytes:
            return Reached(Ending.DISK, f"{disk_bytes >> 20} MiB written, of {limits.disk_bytes >> 20}")
        return None


class Stopwatch:
    """Implements `arena.agents.base.Attended` around an agent's processes. Thread-safe."""

    def __init__(self, processes: Pausable) -> None:
        self._processes = processes
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._paused_s = 0.0
        self._paused_at: float | None = None

    def pause(self) -> None:
        """Stop the processes and the clock."""
        with self._lock:
            if self._paused_at is None:
                self._paused_at = time.monotonic()
        self._processes.pause()

    def resume(self) -> None:
        """Let both go on."""
        self._processes.resume()
        with self._lock:
            if self._paused_at is not None:
                self._paused_s += time.monotonic() - self._paused_at
                self._paused_at = None

    def kill(self) -> None:
        """End the processes."""
        self._processes.kill()

    def paused_s(self) -> float:
        """Seconds in which they were stopped."""
        with self._lock:
            now = 0.0 if self._paused_at is None else time.monotonic() - self._paused_at
            return self._paused_s + now

    def active_s(self) -> float:
        """Seconds since the start in which they were not."""
        return self.elapsed_s() - self.paused_s()

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started
