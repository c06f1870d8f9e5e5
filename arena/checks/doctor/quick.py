"""Runs the items one after the other; whatever happens in one of them is its result."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from arena.checks.doctor.candidates import CANDIDATES
from arena.checks.doctor.children import ask_child
from arena.checks.doctor.evidence import Answer, CrossSeen, Evidence, ItemOutcome, ItemResult, ProbeSeen
from arena.checks.doctor.items import ITEMS, DoctorItem, chosen
from arena.errors import ArenaError, InfrastructureError
from arena.judge.process.client import JudgeClient
from arena.judge.workers.late_work import NAME, UNKNOWN
from arena.platforms import shares_by_socket
from arena.processes.sandbox import network
from arena.results.record import Evaluation

_CHILD_S = 240.0


class Collected:
    """Evidence of this machine. Close it when done."""

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._evaluations: dict[str, Evaluation | InfrastructureError] = {}

    def probe(self) -> ProbeSeen:
        """What a child saw of the device."""
        return self._probe

    def cross_compilation(self) -> CrossSeen:
        """What a child built for other GPUs."""
        return self._cross_compilation

    def isolation(self) -> str:
        """The level of the judge's workers."""
        return self._judge.environment.isolation

    def late_work(self) -> str:
        """Return what the judge measured at its start."""
        return self._judge.environment.versions.get(NAME, UNKNOWN)

    def evaluation(self, candidate: str) -> Evaluation:
        """The judge's word on a candidate; after a failure the next candidate gets a new judge."""
        if candidate not in self._evaluations:
            try:
                self._evaluations[candidate] = self._evaluate(candidate)
            except InfrastructureError as problem:
                self._evaluations[candidate] = problem
        found = self._evaluations[candidate]
        if isinstance(found, InfrastructureError):
            raise found
        return found

    def close(self) -> None:
        """End the judge, if there is one."""
        if "_judge" in self.__dict__:
            self._judge.close()

    @cached_property
    def _probe(self) -> ProbeSeen:
        shared = network.wanted(shares_by_socket(self._platform))
        seen, ended = ask_child(
            "arena.checks.doctor.probe", (self._platform,), ProbeSeen, _CHILD_S, shares_network=shared
        )
        return replace(seen, problem=seen.problem or ended)

    @cached_property
    def _cross_compilation(self) -> CrossSeen:
        seen, ended = ask_child("arena.checks.doctor.cross_builds", (), CrossSeen, _CHILD_S)
        return replace(seen, problem=seen.problem or ended)

    @cached_property
    def _judge(self) -> JudgeClient:
        return JudgeClient(self._platform)

    def _evaluate(self, name: str) -> Evaluation:
        candidate = CANDIDATES[name]
        emulated = self._judge.environment.device.emulated
        with tempfile.TemporaryDirectory(prefix="arena-doctor-") as folder:
            file = Path(folder) / candidate.file.name
            text = candidate.file.read_text(encoding="utf-8")
            comment = "#" if file.suffix == ".py" else "//"  # a text never seen before is in no build cache
            file.write_text(f"{text}\n{comment} {secrets.token_hex(8)}\n", encoding="utf-8")
            return self._judge.evaluate(candidate.task, file, candidate.options(emulated=emulated))


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
