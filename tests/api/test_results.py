"""Results and runs as Python sees them: frames, text, HTML; candidates as path, text or bytes; plug-in agents."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import arena
from arena import agents
from arena.agents.base import AgentSpec
from arena.agents.builtin import Noop
from arena.api import result
from arena.api.candidate import write_candidate
from arena.errors import UsageError
from arena.judge.process.client import JudgeClient
from arena.reports.groups import groups
from arena.reports.results import results_frame
from arena.reports.rows import trial_rows
from arena.reports.standings import standings
from arena.results.effort import Effort
from arena.results.outcome import Outcome
from arena.results.record import CaseResult, Evaluation
from arena.results.verdict import Status
from arena.runs import records
from arena.runs.executors.base import Executor
from arena.runs.runner import RunPlan
from arena.task.definition import TaskType
from arena.task.options import Options
from tests.reports import builders
from tests.reports.builders import case, heldout

API: Any = arena
"""the public API to a caller whose types nobody checks"""


def result_of(*cases: CaseResult, status: Status = Status.PASSED, detail: str = "") -> arena.Result:
    evaluation = builders.trial(status=status, cases=cases, detail=detail).evaluation
    assert isinstance(evaluation, Evaluation)
    return arena.Result(evaluation)


def test_a_result_that_passed() -> None:
    result = result_of(case("a", 2.0), case("b", 8.0), heldout())
    assert result.outcome is Outcome.SOLVED and result.solved and result.speedup == pytest.approx(4.0)
    assert str(result).endswith("solved, speedup 4×, seen 2/2, held-out 1/1") and repr(result) == str(result)
    assert list(result.cases.case) == ["a", "b", "h1"] and list(result.cases.speedup) == [2.0, 8.0, 1.5]
    assert "<table" in result._repr_html_()


def test_a_result_that_fails_held_out_cases_is_overfit() -> None:
    wrong = heldout("h2", candidate=Status.WRONG_RESULT)
    result = result_of(case(), heldout(), wrong)
    assert result.outcome is Outcome.OVERFIT and not result.solved and result.stage_status is Status.WRONG_RESULT
    assert ": overfit, speedup 2×, seen 1/1, held-out 1/2" in str(result)
    assert "h2 (h2 M=4 N=256 float32): wrong_result" in str(result)
    both = heldout("h2", baseline=Status.WRONG_RESULT, candidate=Status.WRONG_RESULT)
    assert result_of(case(), heldout(), both).outcome is Outcome.OVERFIT, "what is wrong is wrong"
    slow = heldout("h2", baseline=Status.TIMEOUT, candidate=Status.TIMEOUT)
    assert result_of(case(), heldout(), slow).solved, "a device that is too slow says nothing of the candidate"
    assert result_of(case(), slow).outcome is Outcome.NO_VERDICT, "where all are such, nothing is known"
    assert result_of(case()).outcome is Outcome.SEEN_ONLY and result_of(case()).solved


def test_a_result_says_how_many_cases_were_skipped() -> None:
    task = arena.load_task("rms_norm")
    evaluation = result_of(case(), heldout()).evaluation
    total = len(task.seen) + len(task.heldout)
    whole, seen_only = (result.result_of(evaluation, task, heldout=heldout) for heldout in (True, False))
    assert whole.summary.endswith(f", held-out 1/1, {total - 2} of {total} cases skipped as too large")
    assert str(whole) == whole.summary and whole.skipped == total - 2
    assert seen_only.skipped == len(task.seen) - 2
    assert "skipped" not in str(result_of(case()))


def test_a_result_that_failed_says_why() -> None:
    result = result_of(status=Status.COMPILE_ERROR, detail="line 3: <no such name>")
    assert (
        result.outcome is Outcome.FAILED
        and not result.solved
        and result.speedup is None
        and result.detail == "line 3: <no such name>"
    )
    assert "failed: compile error: line 3" in str(result) and "&lt;no such name&gt;" in result._repr_html_()


def test_candidates_as_path_text_and_bytes(tmp_path: Path) -> None:
    triton, file = TaskType.TRITON2TRITON, tmp_path / "mine.py"
    file.write_text("one", encoding="utf-8")
    assert write_candidate(file, triton, tmp_path) == write_candidate(str(file), triton, tmp_path) == file
    assert write_candidate("two = 2\n", triton, tmp_path).read_bytes() == b"two = 2\n"
    assert write_candidate(b"three", TaskType.TORCH2HIP, tmp_path) == tmp_path / "kernel.hip"
    assert (tmp_path / "kernel.hip").read_bytes() == b"three"
    for missing in (tmp_path / "no.py", str(tmp_path / "no.py"), "my_kernel", "x = 1", "", "y" * 999, "a\0b"):
        with pytest.raises(UsageError, match="no such file"):
            write_candidate(missing, triton, tmp_path)
    for task_type in (TaskType.HIP2HIP, TaskType.TORCH2HIP):
        with pytest.raises(UsageError, match=f"mine.py: a {task_type} task takes kernel.hip"):
            write_candidate(file, task_type, tmp_path)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: API.run("quickstart", agents="honest"), "`agents` takes a list, not 'honest'"),
        (lambda: API.run("quickstart", tasks="rms_norm"), "`tasks` takes a list, not 'rms_norm'"),
        (lambda: API.run("quickstart", devices="all"), "`devices` takes a list, not 'all'"),
        (lambda: API.run("quickstart", devices=["all"]), "'all' is no device; GPUs are numbered from 0"),
        (lambda: API.run("quickstart", platform="gpu"), "expected one of: auto, cpu, cuda, rocm"),
        (lambda: API.list_tasks(corpora="tasks"), "`corpora` takes a list, not 'tasks'; expected corpora=['tasks']"),
        (lambda: API.load_task("rms_norm", corpora=Path("tasks")), "`corpora` takes a list"),
        (lambda: API.list_tasks(["rms_norm"]), "['rms_norm'] names no task"),
        (lambda: API.load_task(5), "5 names no task; expected an id, a bare name or a task folder"),
        (lambda: API.load_task(Path("nowhere")), "no task matches 'nowhere'"),
        (lambda: API.evaluate("rms_norm", None), "None is no candidate; expected a path, or source"),
        (lambda: API.Judge("cpu", device="x"), "'x' is no device"),
        (lambda: API.Judge("cpu", device=-1), "-1 is no device"),
    ],
)
def test_misread_arguments_are_usage_errors(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], said: str
) -> None:
    monkeypatch.setattr(JudgeClient, "_start", _no_judge)
    with pytest.raises(UsageError, match=re.escape(said)):
        call()


def _no_judge(*_: object) -> None:
    raise AssertionError("a judge was started")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"hold_out": False},
            "unknown option `hold_out`; expected one of: call_timeout_s, case, dump, eager_stream, effort",
        ),
        ({"seed": 1}, "unknown option `seed`"),
        ({"seeds": 0}, "option `seeds`: 0 is less than the minimum of 1"),
        ({"seeds": -1}, "option `seeds`: -1 is less than"),
        ({"seeds": "x"}, "option `seeds`: 'x' is not of type 'integer'"),
        ({"seeds": None}, "option `seeds`: None is not of type 'integer'"),
        ({"max_work": 0}, "option `max_work`: 0 is less than or equal to the minimum of 0"),
        ({"max_work": float("nan")}, "option `max_work`: nan is not of type 'number'"),
        ({"call_timeout_s": 0}, "option `call_timeout_s`: 0 is less than or equal to"),
        ({"targets": ["nonsense"]}, "unknown target 'nonsense'. Known: gfx90a"),
        ({"targets": "gfx942"}, "option `targets`: 'gfx942' is not of type 'array'"),
        ({"heldout": "no"}, "option `heldout`: 'no' is not of type 'boolean'"),
        ({"profile": 1}, "option `profile`: 1 is not of type 'boolean'"),
        ({"platform": "gpu"}, "unknown platform 'gpu'; expected one of: auto, cpu, cuda, rocm"),
    ],
)
def test_a_wrong_option_is_an_error_before_a_judge_is_started(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(JudgeClient, "_start", _no_judge)
    with pytest.raises(UsageError, match=re.escape(said)):
        arena.evaluate("rms_norm", "x = 1\n", **options)


def test_a_judge_refuses_wrong_options_and_takes_right_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def evaluate(*arguments: Any) -> Evaluation:
        asked.append(arguments[3])
        return result_of(case()).evaluation

    monkeypatch.setattr(JudgeClient, "_start", lambda judge: None)
    monkeypatch.setattr(JudgeClient, "close", lambda judge: None)
    monkeypatch.setattr(JudgeClient, "evaluate", evaluate)
    with pytest.raises(UsageError, match="unknown platform 'gpu'; expected one of: auto, cpu, cuda, rocm"):
        arena.Judge("gpu")
    with arena.Judge("cpu") as judge:
        with pytest.raises(UsageError, match="unknown option `hold_out`"):
            judge.evaluate("rms_norm", "x = 1\n", hold_out=False)
        judge.evaluate("rms_norm", "x = 1\n")
        judge.evaluate(
            "rms_norm", "x = 1\n", seeds=2, max_work=None, call_timeout_s=9, targets=("gfx942",), profile=True
        )
    assert asked == [Options(), Options(seeds=2, call_timeout_s=9, targets=("gfx942",), profile=True)]


def test_a_run_read_back_gives_frames(tmp_path: Path) -> None:
    made = builders.simple([2.0, None])
    records.write_head(tmp_path, made.info)
    for trial in made.trials:
        records.write_trial(tmp_path, trial)
    run = arena.load_run(tmp_path)
    assert list(run.trials.outcome) == ["solved", "failed"] and len(run.cases) == 6
    assert str(run) == "r1: 1 agents, 2 tasks, 2 of 2 trials recorded"
    rows = trial_rows([made])
    shown, page = run._repr_html_(), results_frame(standings(rows, groups(rows)), emulated=False)
    assert "1/2 [9.5 %, 90.5 %]" in shown, "solved of planned"
    assert all(cell in shown for cell in page.iloc[0]), "the cells of the report's table"
    assert arena.report(run, tmp_path / "out") == tmp_path / "out" / "index.html"
    with pytest.raises(UsageError, match="compared with itself"):
        arena.compare(run, run)


def test_a_run_takes_effort_and_executor_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[Any, str]] = []

    def judged(plan: RunPlan, folder: Path, devices: Any, where: Executor) -> records.RunRecords:
        asked.append((plan.config.evaluation["effort"], type(where).__name__))
        return builders.simple([2.0])

    monkeypatch.setattr("arena.api.runs._judged", judged)
    arena.run("quickstart", runs_dir=tmp_path, effort="screen")
    arena.run("quickstart", runs_dir=tmp_path, effort="full", executor="local")
    assert asked == [(Effort.SCREEN, "LocalExecutor"), (Effort.FULL, "LocalExecutor")]
    wrong: tuple[dict[str, Any], ...] = ({"effort": "low"}, {"executor": "slurm"}, {"address": "10.0.0.1:6379"})
    for arguments in wrong:
        with pytest.raises(UsageError):
            arena.run("quickstart", runs_dir=tmp_path, **arguments)
    assert len(asked) == 2


@pytest.mark.parametrize("given", ["runs/quickstart", Path("runs/quickstart"), ["runs/quickstart"], None])
def test_a_path_in_place_of_a_run_is_an_error(given: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"report takes runs, such as arena.load_run\('runs/monday'\), not a "):
        arena.report(given, tmp_path / "out")
    with pytest.raises(UsageError, match="compare takes runs"):
        arena.compare(given, given)
    assert not (tmp_path / "out").exists()


def offered(spec: AgentSpec) -> arena.Agent:
    """What a package's entry point names."""
    return Noop(f"plugged in as {spec.name}")


def test_an_installed_package_may_offer_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [EntryPoint("mine", "tests.api.test_results:offered", agents.PLUG_INS)]
    entries.append(EntryPoint("broken", "tests.api.test_results:missing", agents.PLUG_INS))
    monkeypatch.setattr(agents, "entry_points", lambda group: entries if group == agents.PLUG_INS else [])
    assert agents.make_agent(AgentSpec("a", "mine")).name == "plugged in as a"
    assert "plug-in tests.api.test_results:offered" in agents.kinds()["mine"]
    with pytest.raises(UsageError, match=r"agent b: the plug-in .*:missing failed"):
        agents.make_agent(AgentSpec("b", "broken"))


def test_an_agent_needs_no_more_than_to_work() -> None:
    class Copy(arena.Agent):
        name = "copy"

        def work(self, workspace: arena.Workspace, service: object) -> arena.Submission:
            return arena.Submission(workspace.task.baseline_kernel)

    assert Copy().limits is None and Copy().lacks() == ""
