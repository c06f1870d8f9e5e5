"""What a run folder is of: changed tasks and candidates run again, changed options and sessions are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.agents.base import Agent, AgentSpec, EvaluationService, Submission, Workspace
from arena.errors import UsageError
from arena.model.record import Trial
from arena.model.session import Limits
from arena.model.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.identity import outdated
from arena.service.judge_pool import JudgePool
from tests.corpus.folders import TASK, write_task
from tests.fakes import FakeEvaluator, planned

SCALE, TWICE = "triton2triton/suite/scale", "triton2triton/suite/twice"


class Setting:
    """Two tasks, a folder of candidates, and a run of them that can be planned and run again."""

    def __init__(self, place: Path) -> None:
        self.tasks, self.candidates, self.folder = place / "tasks", place / "mine", place / "runs" / "demo"
        write_task(self.tasks, SCALE)
        write_task(self.tasks, TWICE, task=TASK.replace("name: scale", "name: twice"))
        for task in (SCALE, TWICE):
            (self.candidates / task).mkdir(parents=True)
            (self.candidates / task / "kernel.py").write_text("# first\n", encoding="utf-8")

    def plan(self, **evaluation: object) -> runner.RunPlan:
        config = RunConfig(
            name="demo",
            tasks=("*",),
            agents=(AgentSpec("noop", "noop"), AgentSpec("mine", "replay", self.candidates)),
            attempts=1,
            evaluation=evaluation,  # type: ignore[arg-type]
        )
        return planned(config, self.tasks)

    def run(self, **evaluation: object) -> tuple[int, list[str]]:
        """How many candidates were evaluated, and what was said."""
        evaluator, notes = FakeEvaluator(), Notes()
        runner.run(self.plan(**evaluation), self.folder, JudgePool([evaluator]), notes)
        return len(evaluator.seen), notes.said


class Notes(runner.Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []

    def noted(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def test_what_has_not_changed_is_finished(setting: Setting) -> None:
    assert runner.finished(setting.plan(), setting.folder) is None
    assert setting.run() == (4, [])
    done = runner.finished(setting.plan(), setting.folder)
    assert done is not None and len(done.trials) == 4
    assert setting.run() == (0, [])


def test_a_changed_candidate_runs_again(setting: Setting) -> None:
    setting.run()
    (setting.candidates / SCALE / "kernel.py").write_text("# second\n", encoding="utf-8")
    assert runner.finished(setting.plan(), setting.folder) is None
    assert setting.run() == (1, [f"mine on {SCALE}: the candidate has changed since it was recorded; it runs again"])
    assert setting.run() == (0, [])


def test_a_candidate_that_has_come_since_runs(setting: Setting) -> None:
    (setting.candidates / TWICE / "kernel.py").unlink()
    assert setting.run()[0] == 3
    (setting.candidates / TWICE / "kernel.py").write_text("# late\n", encoding="utf-8")
    assert setting.run()[0] == 1


def test_a_changed_task_runs_again(setting: Setting) -> None:
    setting.run()
    heldout = setting.tasks / SCALE / "heldout.yaml"
    heldout.write_text(heldout.read_text(encoding="utf-8").replace("N: 24", "N: 32"), encoding="utf-8")
    evaluated, said = setting.run()
    assert evaluated == 2 and said == [
        f"{agent} on {SCALE}: the task has changed since it was recorded; it runs again" for agent in ("noop", "mine")
    ]


def test_changed_options_are_refused(setting: Setting) -> None:
    setting.run(seeds=2)
    with pytest.raises(UsageError, match=r"other evaluation options: graphs True → False, seeds 2 → 3; .*--name"):
        setting.run(graphs=False)
    assert setting.run(seeds=2) == (0, [])


def test_a_head_that_does_not_say_its_options_is_taken(setting: Setting) -> None:
    setting.run(seeds=2)
    records.write_head(setting.folder, replace(records.read_head(setting.folder), evaluation={}))
    assert setting.run(seeds=5) == (0, [])


def test_an_option_that_a_head_is_too_old_for_counts_as_left_open(setting: Setting) -> None:
    """`max_held` came later: without it a folder was refused, and the message named no change."""
    setting.run(seeds=2)
    head = records.read_head(setting.folder)
    older = {name: value for name, value in head.evaluation.items() if name != "max_held"}
    assert len(older) == len(head.evaluation) - 1
    records.write_head(setting.folder, replace(head, evaluation=older))
    assert setting.run(seeds=2) == (0, [])


def test_a_session_is_not_repeated_unasked(setting: Setting) -> None:
    class Working(Agent):
        name = "noop"

        @property
        def limits(self) -> Limits:
            return Limits()

        def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
            raise AssertionError("nothing is to be done")

    setting.run()
    plan = setting.plan()
    (trial,) = (one for one in records.read_run(setting.folder).trials if one.key == ("noop", SCALE, 1))
    assert outdated([trial], plan.tasks, {"noop": Working()}) == {}
    with pytest.raises(UsageError, match=f"noop on {SCALE}: the task has changed since its session"):
        outdated([replace(trial, task_hash="another")], plan.tasks, {"noop": Working()})


def test_a_folder_of_candidates_for_no_task_is_refused(setting: Setting) -> None:
    setting.candidates.joinpath("triton2triton").rename(setting.candidates / "triton-to-triton")
    with pytest.raises(UsageError, match=rf"agent mine: .* for none of the 2 tasks; expected .*/{SCALE}/kernel.py"):
        setting.plan()


def test_a_failure_of_the_harness_is_no_change(setting: Setting) -> None:
    setting.run()
    plan, trial = setting.plan(), records.read_run(setting.folder).trials[0]
    failed: Trial = replace(trial, status=Status.HARNESS_ERROR, evaluation=None, task_hash="another")
    assert outdated([failed], plan.tasks, plan.agents) == {}
