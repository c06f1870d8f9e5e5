"""`arena run --retry`: recorded trials that ended in a given way are judged again, and no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.agents.base import AgentSpec
from arena.errors import UsageError
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.retry import ended_so, endings
from arena.runs.service.judge_pool import JudgePool
from tests.fakes import FakeEvaluator, planned
from tests.reports import builders as b
from tests.task.corpus.folders import TASK, write_task

OVERFIT = b.trial(cases=[b.case(), b.heldout("h1", None, candidate=Status.WRONG_RESULT)])
NOISY = b.trial(cases=[b.case(noisy=True), b.heldout()])


def test_words_name_outcomes_statuses_and_noise() -> None:
    assert endings(["noisy", "no-verdict", "Seen only", "timing_mismatch", "not_credited"]) == (
        *("noisy", "no verdict", "seen only", "timing_mismatch", "not credited"),
    )
    with pytest.raises(UsageError, match=r"--retry passed: no trial ends so; expected one of .*timing-mismatch"):
        endings(["passed"])


@pytest.mark.parametrize(
    ("word", "overfit", "noisy"),
    [("overfit", True, False), ("wrong_result", True, False), ("noisy", False, True), ("solved", False, True)],
)
def test_a_trial_ends_in_its_outcome_its_stage_status_and_noise(word: str, overfit: bool, noisy: bool) -> None:
    assert (ended_so(OVERFIT, endings([word])), ended_so(NOISY, endings([word]))) == (overfit, noisy)
    assert not ended_so(OVERFIT, ())


def test_only_what_ended_so_is_judged_again(tmp_path: Path) -> None:
    """One of two candidates is wrong: it alone is judged again. A run with nothing to retry is finished."""
    tasks, mine = tmp_path / "tasks", tmp_path / "mine"
    names = ("triton2triton/suite/scale", "triton2triton/suite/twice")
    for name, text in zip(names, ("# right\n", "# WRONG\n"), strict=True):
        write_task(tasks, name, task=TASK.replace("name: scale", f"name: {name.rsplit('/', 1)[1]}"))
        (mine / name).mkdir(parents=True)
        (mine / name / "kernel.py").write_text(text, encoding="utf-8")
    plan = planned(RunConfig("demo", ("*",), (AgentSpec("mine", "replay", mine),), attempts=1), tasks)
    folder = tmp_path / "runs" / "demo"
    runner.run(plan, folder, JudgePool([FakeEvaluator()]))
    assert runner.finished(plan, folder) is not None
    retried = replace(plan, retry=endings(["failed"]))
    assert runner.finished(retried, folder) is None
    again = FakeEvaluator()
    runner.run(retried, folder, JudgePool([again]))
    assert [task for task, *_ in again.seen] == ["twice"]
    assert len(records.read_run(folder).trials) == 2
    assert runner.finished(replace(plan, retry=endings(["overfit"])), folder) is not None
