"""Results of baselines: what holds for the judge's life, and what is tried again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arena.judge.correctness.verify import OutputCheck
from arena.judge.performance.baselines import BaselineCache, BaselineResult, Baselines
from arena.results.record import Estimate
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Case
from arena.task.options import Options
from tests.task.corpus.folders import write_task


@dataclass
class Scripted(Baselines):
    """Finds what a list says, in turn."""

    script: list[Status] = field(default_factory=list)

    def _measure(self, case: Case) -> BaselineResult:
        found = OutputCheck(self.script.pop(0))
        return BaselineResult(found, Estimate(1, 1, 1) if found.status is Status.PASSED else None, 0.001)


def test_a_failure_of_a_baseline_is_tried_again_by_the_next_evaluation(tmp_path: Path) -> None:
    """A hiccup left every later candidate passed and untimed."""
    task, cache, script = load_task(write_task(tmp_path)), BaselineCache(), [Status.CRASH, Status.PASSED]
    none: Any = None

    def baselines() -> Scripted:
        return Scripted(task, task.cases, Options(), none, none, none, cache, script=script)

    case, first = task.cases[0], baselines()
    for _ in range(2):  # one evaluation sees one result
        assert first.known(case).finding.status is Status.CRASH and first.is_known(case)
    second = baselines()
    assert not second.is_known(case)
    assert second.known(case).isolated_ms is not None and baselines().known(case).isolated_ms is not None
    assert not script
