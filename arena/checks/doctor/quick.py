"""Runs the items one after the other; whatever happens in one of them is its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from arena.checks.doctor.collecting import Collected
from arena.checks.doctor.evidence import Answer, Evidence, ItemOutcome, ItemResult
from arena.checks.doctor.items import ITEMS, DoctorItem, chosen
from arena.errors import ArenaError


def run_quick(
    platform: str, on_result: Callable[[ItemResult], None], only: Sequence[str] = ()
) -> tuple[ItemResult, ...]:
    """Try every item that applies to the platform (`auto`: the best one here), telling of each as it ends.

    `only`: those with one of these texts in their names; raises `UsageError` for a text that is in none.
    """
    items = chosen(only)
    evidence = Collected(platform)
    try:
        return run_items(items, evidence, on_result)
    finally:
        evidence.close()


def run_items(
    items: Sequence[DoctorItem], evidence: Evidence, on_result: Callable[[ItemResult], None]
) -> tuple[ItemResult, ...]:
    """Try each item in turn; where there is no device, the first says so and the rest are skipped."""
    results: list[ItemResult] = []
    for item in items:
        started = time.monotonic()
        answer = _answer(item, evidence, first=not results)
        if answer is None:
            continue
        result = ItemResult(item.name, answer.outcome, answer.seen, time.monotonic() - started)
        results.append(result)
        on_result(result)
    return tuple(results)


def _answer(item: DoctorItem, evidence: Evidence, *, first: bool) -> Answer | None:
    """The item's answer; None where it does not apply here."""
    device = evidence.probe().device
    if device is None and not first:
        return Answer(ItemOutcome.SKIPPED, f"not without {ITEMS[0].name}")
    if device is not None and device.facts.platform not in item.platforms:
        return None
    try:
        return item.check(evidence)
    except ArenaError as problem:
        return Answer(ItemOutcome.FAIL, str(problem))
    except Exception as problem:  # a mistake of this package must not hide the other items
        return Answer(ItemOutcome.FAIL, f"the test itself failed: {problem!r}")
