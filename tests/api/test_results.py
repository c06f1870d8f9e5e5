"""Results and runs as Python sees them: frames, text, HTML; candidates as path, text or bytes; plug-in agents."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import arena
from arena import agents
from arena.agents.base import AgentSpec
from arena.agents.builtin import Noop
from arena.api.evaluation import _written
from arena.errors import UsageError
from arena.model.record import CaseResult, Evaluation
from arena.model.verdict import Status
from arena.runs import records
from tests.reporting import builders
from tests.reporting.builders import case, heldout


def result_of(*cases: CaseResult, status: Status = Status.PASSED, detail: str = "") -> arena.Result:
    evaluation = builders.trial(status=status, cases=cases, detail=detail).evaluation
    assert isinstance(evaluation, Evaluation)
    return arena.Result(evaluation)


def test_a_result_that_passed() -> None:
    result = result_of(case("a", 2.0), case("b", 8.0), heldout())
    assert result.passed and result.heldout_passed and result.speedup == pytest.approx(4.0)
    assert str(result).endswith("passed, speedup 4×, seen 2/2, held-out 1/1") and repr(result) == str(result)
    assert list(result.cases.case) == ["a", "b", "h1"] and list(result.cases.speedup) == [2.0, 8.0, 1.5]
    assert "<table" in result._repr_html_()


def test_a_result_that_fails_held_out_cases_has_not_passed() -> None:
    wrong = heldout("h2", candidate=Status.WRONG_RESULT)
    result = result_of(case(), heldout(), wrong)
    assert result.status is Status.PASSED and not result.passed and result.heldout_passed is False
    assert "held-out 1/2" in str(result) and "h2 (h2 M=4 N=256 float32): wrong_result" in str(result)
    known = heldout("h2", baseline=Status.WRONG_RESULT, candidate=Status.WRONG_RESULT)
    assert result_of(case(), heldout(), known).passed, "a case that the baseline fails does not count"
    assert result_of(case()).passed and result_of(case()).heldout_passed is None


def test_a_result_that_failed_says_why() -> None:
    result = result_of(status=Status.COMPILE_ERROR, detail="line 3: <no such name>")
    assert not result.passed and result.speedup is None and result.detail == "line 3: <no such name>"
    assert "compile_error: line 3" in str(result) and "&lt;no such name&gt;" in result._repr_html_()


def test_candidates_as_path_text_and_bytes(tmp_path: Path) -> None:
    file, place = tmp_path / "mine.py", tmp_path / "kernel.py"
    file.write_text("one", encoding="utf-8")
    assert _written(file, place) == _written(str(file), place) == file
    assert _written("two = 2", place).read_bytes() == b"two = 2"
    assert _written(b"three", place).read_bytes() == b"three"
    for missing in (tmp_path / "no.py", str(tmp_path / "no.py")):
        with pytest.raises(UsageError, match="no such file"):
            _written(missing, place)


def test_a_run_read_back_gives_frames(tmp_path: Path) -> None:
    made = builders.simple([2.0, None])
    records.write_head(tmp_path, made.info)
    for trial in made.trials:
        records.write_trial(tmp_path, trial)
    run = arena.load_run(tmp_path)
    assert list(run.trials.status) == ["passed", "wrong_result"] and len(run.cases) == 6
    assert str(run) == "r1: 1 agents, 2 tasks, 2 of 2 trials recorded"
    assert "alpha" in run._repr_html_()
    assert arena.report(run, tmp_path / "out") == tmp_path / "out" / "index.html"
    with pytest.raises(UsageError, match="compared with itself"):
        arena.compare(run, run)


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
