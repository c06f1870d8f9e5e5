"""What a run folder is of: changed tasks and candidates run again, changed options and sessions are refused."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from arena import version
from arena.agents.base import Agent, AgentSpec, EvaluationService, Submission, Workspace
from arena.agents.cli_agent import CliAgent
from arena.agents.definition import Definition, PromptBy
from arena.errors import UsageError
from arena.package import PACKAGE
from arena.reports.report_warnings import mixture, warnings
from arena.reports.rows import trial_rows
from arena.results.record import Trial
from arena.results.session import Limits
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.identity import differences, outdated, recorded
from arena.runs.service.judge_pool import JudgePool
from tests.fakes import HERE, FakeEvaluator, planned
from tests.task.corpus.folders import TASK, write_task

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


def test_an_option_under_its_older_name_is_the_same(setting: Setting) -> None:
    setting.run(seeds=2)
    head = records.read_head(setting.folder)
    older = {"only" if name == "case" else name: value for name, value in head.evaluation.items()}
    assert "only" in older and recorded(older) == head.evaluation
    records.write_head(setting.folder, replace(head, evaluation=older))
    setting.run(seeds=2)


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


class Worker(Agent):
    """Works, so that it has limits and a program."""

    name = "worker"

    def __init__(self, evaluations: int, program: str) -> None:
        self._evaluations, self._program = evaluations, program

    @property
    def limits(self) -> Limits:
        return Limits(evaluations=self._evaluations)

    def program(self) -> str:
        return self._program

    def work(self, workspace: Workspace, service: EvaluationService) -> Submission:
        workspace.candidate.write_text("# mine\n", encoding="utf-8")
        return Submission(workspace.candidate)


def begun(place: Path, judge: str, worker: Worker, *, failing: str = "", allow_mixed: bool = False) -> list[str]:
    """Run two tasks by a judge of this hash; return what was said."""
    setting = Setting(place) if not (place / "tasks").exists() else None
    tasks, folder = place / "tasks", place / "runs" / "demo"
    assert setting is None or setting.tasks == tasks
    plan = planned(RunConfig(name="demo", tasks=("*",), agents=(AgentSpec("noop", "noop"),), attempts=1), tasks)
    plan = replace(plan, agents={"worker": worker}, allow_mixed=allow_mixed)
    here = replace(HERE, versions={"arena": f"0.1.0+{judge}", "judge": judge, "torch": "2.13.0"})
    notes = Notes()
    pool = JudgePool([FakeEvaluator(environment=here, failing={failing} if failing else set())])
    runner.run(plan, folder, pool, notes)
    return notes.said


@pytest.mark.parametrize(
    ("judge", "worker", "said"),
    [
        ("b", Worker(5, "p1"), "the judge changed: a → b"),
        ("a", Worker(5, "p2"), "the program or definition of agent worker changed: p1 → p2"),
        ("a", Worker(9, "p1"), "limits of agent worker changed: evaluations 5 → 9"),
    ],
)
def test_a_run_goes_on_with_another_judge_or_agent_only_where_that_is_asked_for(
    tmp_path: Path, judge: str, worker: Worker, said: str
) -> None:
    begun(tmp_path, "a", Worker(5, "p1"), failing="scale")
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        begun(tmp_path, judge, worker)
    assert "--allow-mixed" in str(refused.value) and "--name" in str(refused.value)
    assert [note for note in begun(tmp_path, judge, worker, allow_mixed=True) if said in note]
    run = records.read_run(tmp_path / "runs" / "demo")
    assert mixture(run), "reports mark it"
    found = [one for one in warnings([run], trial_rows([run])) if "mixed" in one.problem]
    assert len(found) == 1 and found[0].items == mixture(run)


def test_a_run_by_one_judge_is_not_mixed_and_code_that_decides_no_verdict_does_not_count(tmp_path: Path) -> None:
    begun(tmp_path, "a", Worker(5, "p1"), failing="scale")
    assert begun(tmp_path, "a", Worker(5, "p1")) == []
    run = records.read_run(tmp_path / "runs" / "demo")
    assert mixture(run) == ()
    pages_changed = replace(HERE, versions={**run.info.environment.versions, "arena": "0.1.0+other"})
    assert differences(run.info, replace(run.info, environment=pages_changed)) == []
    old = replace(run.info, environment=HERE, used={})
    assert differences(old, run.info) == [], "heads of older versions do not say what made them"


def test_the_hash_of_the_judge_is_of_what_decides_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = shutil.copytree(PACKAGE, tmp_path / "arena", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(version, "PACKAGE", package)

    def hashes() -> tuple[str, str]:
        version.judge_hash.cache_clear()
        version.code_hash.cache_clear()
        return version.judge_hash(), version.code_hash()

    before = hashes()
    for name, decides in (
        ("judge/correctness/verify.py", True),
        ("worker/command_loop.py", True),
        ("reports/site.py", False),
    ):
        text = (package / name).read_text(encoding="utf-8")
        (package / name).write_text(f"{text}\n# changed\n", encoding="utf-8")
        judge, code = hashes()
        assert (judge != before[0], code != before[1]) == (decides, True), name
        before = judge, code
    monkeypatch.undo()
    hashes()


def test_an_agents_digest_is_of_its_program_and_definition(tmp_path: Path) -> None:
    program = tmp_path / "agent.sh"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    definition = Definition("mine", "", (str(program),), PromptBy.ARGUMENT, "plain", tmp_path / "mine.yaml")
    agent = CliAgent("mine", definition, "model-x")
    before = agent.program()
    assert CliAgent("mine", replace(definition, limits=Limits(evaluations=1)), "model-x").program() == before
    assert CliAgent("mine", definition, "model-y").program() != before
    assert CliAgent("mine", replace(definition, about="another"), "model-x").program() != before
    program.write_text("#!/bin/sh\necho changed\n", encoding="utf-8")
    assert agent.program() != before


def test_a_word_of_a_command_line_that_can_be_no_file_is_left_out_of_the_digest() -> None:
    program = "import os\n" * 1000
    definition = Definition("mine", "", ("sh", "-c", program, "\0"), PromptBy.ARGUMENT, "plain", Path("mine.yaml"))
    assert CliAgent("mine", definition).program() != CliAgent("mine", replace(definition, command=("sh",))).program()
