"""Runs: every planned trial once, resumed where they stopped, and what was handed in is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from arena.agents import make_agent
from arena.agents.base import Agent, AgentSpec, EvaluationService, Submission, Workspace
from arena.errors import FileError, RecordError, UsageError
from arena.judge.process.messages import Progress
from arena.results.environment import Environment
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.estimate import estimate, recorded_trials
from arena.runs.service.judge_pool import JudgePool
from arena.runs.submission import SUBMISSIONS
from tests.fakes import DEVICE, HERE, FakeEvaluator, FakeService, planned
from tests.task.corpus.folders import HELDOUT, TASK, write_task

SCALE, TWICE = "triton2triton/suite/scale", "triton2triton/suite/twice"


@dataclass
class Notes(runner.Watcher):
    """A watcher that writes down what it is told."""

    plans: list[tuple[int, int]] = field(default_factory=list)
    begun: list[tuple[str, str, int]] = field(default_factory=list)
    steps: list[Progress] = field(default_factory=list)
    ended: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def planned(self, total: int, recorded: int) -> None:
        self.plans.append((total, recorded))

    def started(self, trial: runner.TrialKey) -> None:
        self.begun.append(trial)

    def progress(self, trial: runner.TrialKey, progress: Progress) -> None:
        self.steps.append(progress)

    def finished(self, trial: Trial) -> None:
        self.ended.append(trial)

    def noted(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    root = tmp_path / "tasks"
    write_task(root, SCALE)
    write_task(root, TWICE, task=TASK.replace("name: scale", "name: twice"))
    return root


def config(*agents: AgentSpec, **changes: object) -> RunConfig:
    plain = RunConfig(
        name="demo", tasks=("*",), agents=agents or (AgentSpec("noop", "noop"),), path="demo.yaml", attempts=1
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def statuses(run: records.RunRecords) -> dict[tuple[str, str, int], Status]:
    return {trial.key: trial.status for trial in run.trials}


def test_every_planned_trial_is_run_and_recorded(tasks: Path, tmp_path: Path) -> None:
    plan = planned(
        config(AgentSpec("noop", "noop"), AgentSpec("top", "expert"), attempts=2, evaluation={"seeds": 7}), tasks
    )
    evaluator, notes = FakeEvaluator(), Notes()
    run = runner.run(plan, tmp_path / "demo", JudgePool([evaluator]), notes)
    assert [trial.key for trial in run.trials] == list(run.info.planned) == notes.begun
    assert run.missing == 0 and notes.plans == [(8, 0)]
    assert [trial.key for trial in notes.ended] == notes.begun and len(notes.steps) == 4
    for trial in run.trials:
        assert trial.status is (Status.PASSED if trial.agent == "noop" else Status.NOTHING_SUBMITTED)
        assert (trial.evaluation is None) is (trial.agent == "top")
        assert trial.task_hash == plan.tasks[trial.task].content_hash
        assert trial.seconds > 0
    assert run.trials[1].detail == "the task has no expert"
    assert {options.seeds for options in evaluator.options} == {7}
    assert (run.info.config, run.info.run, run.info.tasks) == ("demo.yaml", "demo", (SCALE, TWICE))


def test_a_failing_candidate_is_a_value(tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / SCALE).mkdir(parents=True)
    (tmp_path / "mine" / SCALE / "kernel.py").write_text("# WRONG", encoding="utf-8")
    plan = planned(config(AgentSpec("mine", "replay", tmp_path / "mine")), tasks)
    run = runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    wrong, nothing = run.trials
    assert (wrong.status, wrong.detail) == (Status.WRONG_RESULT, "so it is")
    assert nothing.status is Status.NOTHING_SUBMITTED and "holds no kernel.py" in nothing.detail


def test_an_interrupted_run_goes_on_where_it_stopped(tasks: Path, tmp_path: Path) -> None:
    plan = planned(config(attempts=2), tasks)
    with pytest.raises(KeyboardInterrupt):
        runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator(interrupt_after=1)]), Notes())
    before = records.read_run(tmp_path / "demo")
    assert (len(before.trials), before.missing) == (1, 3)
    evaluator, notes = FakeEvaluator(), Notes()
    after = runner.run(plan, tmp_path / "demo", JudgePool([evaluator]), notes)
    assert notes.plans == [(4, 1)] and len(evaluator.seen) == 3
    assert after.missing == 0 and after.trials[0] == before.trials[0]
    assert after.info == before.info
    again = FakeEvaluator()
    assert runner.run(plan, tmp_path / "demo", JudgePool([again]), Notes()) == after and again.seen == []


def test_a_harness_failure_is_recorded_and_tried_again(tasks: Path, tmp_path: Path) -> None:
    plan = planned(config(), tasks)
    run = runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator(failing={"scale"})]), Notes())
    assert statuses(run) == {
        ("noop", SCALE, 1): Status.HARNESS_ERROR,
        ("noop", TWICE, 1): Status.PASSED,
    }
    assert run.trials[0].detail == "the device fell over" and run.trials[0].evaluation is None
    evaluator = FakeEvaluator()
    again = runner.run(plan, tmp_path / "demo", JudgePool([evaluator]), Notes())
    assert set(statuses(again).values()) == {Status.PASSED}
    assert [name for name, _, _ in evaluator.seen] == ["scale"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": ("scale",)}, "also holds task triton2triton/suite/twice, which this command leaves out"),
        ({"agents": (AgentSpec("other", "noop"),)}, "also holds agent noop, which this command leaves out"),
        ({"attempts": 1}, "also holds 2 attempts, which this command leaves out"),
    ],
)
def test_a_run_that_leaves_trials_out_does_not_go_on_in_this_folder(
    tasks: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    runner.run(planned(config(attempts=2), tasks), tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    with pytest.raises(UsageError, match=re.escape(said)):
        runner.run(
            planned(config(**{"attempts": 2, **changes}), tasks),
            tmp_path / "demo",
            JudgePool([FakeEvaluator()]),
            Notes(),
        )
    assert len(records.read_run(tmp_path / "demo").trials) == 4


@pytest.mark.parametrize(
    ("begun", "grown", "more"),
    [
        ({}, {"attempts": 3}, 4),
        ({"tasks": ("scale",)}, {}, 1),
        ({}, {"agents": (AgentSpec("noop", "noop"), AgentSpec("other", "noop"))}, 2),
    ],
    ids=["attempts", "tasks", "agents"],
)
def test_a_run_grows(tasks: Path, tmp_path: Path, begun: dict[str, Any], grown: dict[str, Any], more: int) -> None:
    folder, notes, evaluator = tmp_path / "demo", Notes(), FakeEvaluator()
    before = runner.run(planned(config(**begun), tasks), folder, JudgePool([FakeEvaluator()]), Notes())
    plan = planned(config(**grown), tasks)
    assert runner.finished(plan, folder) is None and len(runner.left(plan, folder)) == more
    run = runner.run(plan, folder, JudgePool([evaluator]), notes)
    assert len(evaluator.seen) == more and len(run.trials) == len(before.trials) + more == len(run.info.planned)
    assert run.info.started_at == before.info.started_at and {*run.info.used} == {*run.info.agents}
    assert any("grows from" in text for text in notes.notes)
    assert runner.finished(plan, folder) is not None


def test_a_limit_leaves_the_rest_for_the_next_call(tasks: Path, tmp_path: Path) -> None:
    plan = replace(planned(config(attempts=2), tasks), limit=3)
    assert len(runner.left(plan, tmp_path / "demo")) == 3
    first = runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    assert (len(first.trials), first.missing) == (3, 1)
    second = runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    assert (len(second.trials), second.missing) == (4, 0)


def test_an_estimate_rests_on_recorded_trials_of_the_same_agents(tasks: Path, tmp_path: Path) -> None:
    done = runner.run(planned(config(), tasks), tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    trials = [replace(trial, seconds=40.0 if trial.task == SCALE else 100.0) for trial in done.trials]
    missing = [("noop", SCALE, 2), ("noop", TWICE, 2), ("noop", "new", 1), ("other", SCALE, 1)]
    found = estimate(missing, trials)
    assert (found.seconds, found.recorded, found.unknown) == (40 + 100 + 70, 2, 1)
    assert str(found) == (
        "4 trials, about 4 min one after the other, by 2 recorded trials; 1 of agents without a record are not counted"
    )
    assert str(estimate(missing, [])) == "4 trials; no estimate: no trial of these agents is recorded"
    assert recorded_trials(tmp_path, "auto", "full") == list(done.trials)
    assert recorded_trials(tmp_path, "cuda", "full") == [] == recorded_trials(tmp_path, "auto", "screen")


def test_a_run_is_not_resumed_on_another_device(tasks: Path, tmp_path: Path) -> None:
    plan = planned(config(), tasks)
    runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    there = FakeEvaluator(Environment(replace(DEVICE, name="another"), "session"))
    with pytest.raises(UsageError, match="was begun on a processor; resume it there"):
        runner.run(plan, tmp_path / "demo", JudgePool([there]), Notes())


def test_a_record_of_another_version_is_not_passed_over(tasks: Path, tmp_path: Path) -> None:
    plan = planned(config(), tasks)
    runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    path = records.trial_path(tmp_path / "demo", "noop", SCALE, 1)
    path.write_text(path.read_text(encoding="utf-8").replace('"schema_version": 1', '"schema_version": 99'))
    evaluator = FakeEvaluator()
    with pytest.raises(RecordError, match="schema version 99"):
        runner.run(plan, tmp_path / "demo", JudgePool([evaluator]), Notes())
    assert evaluator.seen == [] and path.is_file()


@pytest.mark.parametrize("failing", [set(), {"scale", "twice"}], ids=["judged", "harness failed"])
def test_what_was_handed_in_can_be_replayed(tasks: Path, tmp_path: Path, failing: set[str]) -> None:
    """Also where the harness failed: an agent's work may have cost hours."""
    plan = planned(config(attempts=2), tasks)
    runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator(failing=failing)]), Notes())
    kept = tmp_path / "demo" / SUBMISSIONS / "noop"
    assert len(list(kept.rglob("kernel.py"))) == 4
    replay = make_agent(AgentSpec("again", "replay", kept))
    (tmp_path / "work").mkdir()
    for task in plan.tasks.values():
        for attempt in (1, 2):
            submission = replay.work(Workspace(tmp_path / "work", task, attempt, HERE, tmp_path), FakeService())
            assert submission.candidate is not None and task.baseline_kernel is not None
            assert submission.candidate.read_bytes() == task.baseline_kernel.read_bytes()


def test_each_trial_has_a_workspace_of_its_own(tasks: Path, tmp_path: Path) -> None:
    places: list[Path] = []

    class Curious(Agent):
        """Looks around, and hands in nothing."""

        name = "curious"

        def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
            places.append(workspace.folder)
            assert list(workspace.folder.iterdir()) == []
            (workspace.folder / "notes").write_text("mine", encoding="utf-8")
            return Submission(None, "no idea")

    plan = replace(planned(config(), tasks), agents={"curious": Curious()})
    run = runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator()]), Notes())
    assert {trial.detail for trial in run.trials} == {"no idea"}
    assert len(set(places)) == 2 and not any(place.exists() for place in places)
    assert not (tmp_path / "demo" / SUBMISSIONS).exists()


def test_fresh_heldout_cases_replace_the_committed_ones(tasks: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh" / SCALE / "heldout.yaml"
    fresh.parent.mkdir(parents=True)
    fresh.write_text(HELDOUT.replace("M: 3, N: 24", "M: 5, N: 24"), encoding="utf-8")
    committed = planned(config(tasks=("scale",)), tasks)
    plan = planned(config(tasks=("scale",), heldout=tmp_path / "fresh"), tasks)
    assert plan.tasks[SCALE].content_hash != committed.tasks[SCALE].content_hash
    evaluator = FakeEvaluator()
    run = runner.run(plan, tmp_path / "demo", JudgePool([evaluator]), Notes())
    assert evaluator.seen[0][2] == fresh
    assert run.trials[0].task_hash == plan.tasks[SCALE].content_hash
    with pytest.raises(UsageError, match="`arena heldout sample` writes one"):
        planned(config(heldout=tmp_path / "fresh"), tasks)


def test_a_malformed_task_fails_the_plans_that_select_it(tasks: Path) -> None:
    (tasks / TWICE / "seen.yaml").write_text("[]", encoding="utf-8")
    with pytest.raises(FileError, match=r"seen.yaml"):
        planned(config(tasks=("twice",)), tasks)
    assert set(planned(config(tasks=("scale",)), tasks).tasks) == {SCALE}
