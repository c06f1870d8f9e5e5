"""Limits are held against what events report; the clock stands still with the agent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from arena.agents import budget as budgets
from arena.agents.budget import Budget, Stopwatch
from arena.agents.definition import Price
from arena.results.session import Ending, Event, EventKind, Limits, Tokens


def used(*counts: tuple[int, int, int], price: Price | None = None, cost: float = 0.0, **limits: float) -> Budget:
    budget = Budget(Limits(**limits), price)  # type: ignore[arg-type]
    for count in counts:
        budget.add(Event(EventKind.MESSAGE, tokens=Tokens(*count), cost_usd=cost))
    return budget


def test_tokens_add_up_and_cached_ones_are_part_of_the_input() -> None:
    budget = used((100, 10, 80), (200, 5, 0))
    assert budget.tokens == Tokens(300, 15, 80) and budget.tokens.total == 315


def test_cost_is_what_the_agent_reports_else_its_tokens_times_the_price() -> None:
    price = Price(input=2.0, output=10.0, cached=0.5)
    assert used((1_000_000, 100_000, 400_000), price=price).cost_usd == pytest.approx(1.2 + 0.2 + 1.0)
    assert used((1_000_000, 0, 0), price=price, cost=0.25).cost_usd == 0.25
    assert used((1_000_000, 0, 0)).cost_usd == 0.0


@pytest.mark.parametrize(
    ("budget", "active_s", "disk_bytes", "ending"),
    [
        (used(wall_clock_s=10), 9.9, 0, None),
        (used(wall_clock_s=10), 10.0, 0, Ending.WALL_CLOCK),
        (used((90, 10, 0), tokens=100), 0, 0, None),
        (used((90, 11, 0), tokens=100), 0, 0, Ending.TOKENS),
        (used((1, 1, 0), cost=0.6, cost_usd=0.5), 0, 0, Ending.COST),
        (used((1, 1, 0), cost=0.4, cost_usd=0.5), 0, 0, None),
        (used(disk_bytes=1000), 0, 1001, Ending.DISK),
        (used((10**9, 10**9, 0)), 0, 0, None),
    ],
)
def test_limits(budget: Budget, active_s: float, disk_bytes: int, ending: Ending | None) -> None:
    reached = budget.reached(active_s, disk_bytes)
    assert (None if reached is None else reached.ending) is ending
    assert reached is None or reached.detail


class Sleepers:
    """Processes that need no stopping."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def pause(self) -> None:
        self.heard.append("pause")

    def resume(self) -> None:
        self.heard.append("resume")

    def kill(self) -> None:
        self.heard.append("kill")


def test_the_clock_stands_still_with_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: now[0]))
    sleepers = Sleepers()
    watch = Stopwatch(sleepers)
    now[0] += 5
    watch.pause()
    now[0] += 20
    assert (watch.active_s(), watch.paused_s()) == (5, 20)
    watch.resume()
    now[0] += 7
    assert (watch.active_s(), watch.paused_s(), watch.elapsed_s()) == (12, 20, 32)
    assert sleepers.heard == ["pause", "resume"]
