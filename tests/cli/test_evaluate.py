"""What `arena evaluate` prints of an evaluation, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

import arena
from arena.cli.app import app
from arena.errors import InfrastructureError, UsageError
from arena.results.record import CaseResult, Evaluation
from arena.results.verdict import Status
from arena.task.options import Options
from tests.fakes import FakeEvaluator
from tests.reports import builders
from tests.reports.builders import case, heldout

KERNEL = "tasks/triton2triton/normalization/rms_norm/kernel.py"
WRONG = heldout("h2", candidate=Status.WRONG_RESULT)


class FakeJudge(FakeEvaluator):
    """Finds these cases, whatever the candidate is."""

    cases: Sequence[CaseResult] = ()

    def __init__(self, platform: str, device: int | None = None) -> None:
        super().__init__()

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        evaluation = builders.trial("triton2triton/normalization/rms_norm", cases=self.cases).evaluation
        assert evaluation is not None
        return evaluation

    def close(self) -> None:
        """Nothing was started."""


def evaluated(monkeypatch: pytest.MonkeyPatch, *typed: str, cases: Sequence[CaseResult]) -> Result:
    monkeypatch.setattr("arena.api.evaluation.JudgeClient", FakeJudge)
    monkeypatch.setattr(FakeJudge, "cases", cases)
    return CliRunner().invoke(app, ["evaluate", "rms_norm", KERNEL, *typed])


def test_the_last_line_is_the_overall_result(monkeypatch: pytest.MonkeyPatch) -> None:
    task = arena.load_task("rms_norm")
    total = len(task.seen) + len(task.heldout)
    done = evaluated(monkeypatch, cases=[case(), heldout()])
    said = "solved, speedup 2×, seen 1/1, held-out 1/1"
    skipped = f"{total - 2} of {total} cases skipped as too large"
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, f"{task.id}: {said}, {skipped}")
    done = evaluated(monkeypatch, "--no-heldout", cases=[case()])
    skipped = f"{len(task.seen) - 1} of {len(task.seen)} cases skipped as too large"
    assert done.output.splitlines()[-1] == f"{task.id}: seen only, speedup 2×, seen 1/1, {skipped}"


def test_title_and_last_line_say_that_held_out_cases_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    done = evaluated(monkeypatch, cases=[case(), heldout(), WRONG])
    assert done.exit_code == 1
    assert done.output.count("rms_norm: overfit") == 2


def test_the_sign_of_noisy_cases_is_explained_where_it_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "~" not in evaluated(monkeypatch, cases=[case()]).output
    shown = evaluated(monkeypatch, cases=[case(), case("b", noisy=True)]).output
    assert "] ~" in shown and "~: a noisy case, whose 95 % interval stayed wide." in shown


def test_json_begins_with_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    done = evaluated(monkeypatch, "--json", cases=[case(), WRONG])
    said = msgspec.json.decode(done.stdout)
    assert (said["outcome"], said["solved"], said["stage_status"], said["speedup"]) == (
        "overfit",
        False,
        "wrong_result",
        2.0,
    )
    assert said["skipped"] > 0 and msgspec.convert(said, Evaluation).cases[1].candidate is Status.WRONG_RESULT
    assert list(said)[:3] == ["outcome", "solved", "stage_status"]


def test_one_case_is_judged_alone_and_a_held_out_one_beside_the_smallest_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    evaluate = FakeJudge.evaluate

    def noted(judge: FakeJudge, task: Path, candidate: Path, options: Options, *rest: object) -> Evaluation:
        asked.append(options.case)
        return evaluate(judge, task, candidate, options, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeJudge, "evaluate", noted)
    assert evaluated(monkeypatch, "--case", "seen-02", cases=[case()]).exit_code == 0
    said = evaluated(monkeypatch, "--case", "heldout-03", cases=[case()])
    assert asked == [("seen-02",), ("seen-01", "heldout-03")] and "seen-01 is judged too" in said.output
    with pytest.raises(UsageError, match="--case seen-99: triton2triton/normalization/rms_norm has no such case"):
        raise evaluated(monkeypatch, "--case", "seen-99", cases=[]).exception or AssertionError


def test_a_case_that_is_made_up_is_never_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    task = "triton2triton/normalization/rms_norm"

    def judged(status: Status) -> Result:
        trial = builders.trial(task, status, cases=[case(candidate=status)])
        assert trial.evaluation is not None
        found = replace(trial.evaluation, made_up="M=5")
        monkeypatch.setattr(FakeJudge, "finish", lambda *given: found)
        return evaluated(monkeypatch, "--like", "M=5", cases=[])

    done = judged(Status.PASSED)
    said = f"{task}: passed with M=5, no case of the task: no verdict"
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, said) and "solved" not in done.output
    failed = judged(Status.WRONG_RESULT)
    assert failed.exit_code == 1 and "wrong result with M=5" in failed.output.splitlines()[-1]
    with pytest.raises(UsageError, match="M=0 is outside the domain of M"):
        raise evaluated(monkeypatch, "--like", "M=0", cases=[]).exception or AssertionError


def test_cases_that_were_not_named_are_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "skipped" not in evaluated(monkeypatch, "--case", "seen-02", cases=[case()]).output


def test_a_file_is_judged_again_by_the_same_judge_when_it_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A half-written file waits, a judge that fails does not end it, and Ctrl-C does, with the last exit code."""
    kernel = tmp_path / "kernel.py"
    kernel.write_text("right", encoding="utf-8")
    steps: list[str | None] = ["", None, "WR", "WRONG", None, None, "device", None, "fine again", None, None]
    judges: list[FakeJudge] = []

    def pass_time(_: float) -> None:
        if not steps:
            raise KeyboardInterrupt
        if (text := steps.pop(0)) is not None:
            kernel.write_text(text, encoding="utf-8")

    def judged(judge: FakeJudge, found: Evaluation, text: str) -> Evaluation:
        judges.append(judge)
        if text == "device":
            raise InfrastructureError("the device fell over")
        status = Status.WRONG_RESULT if "WRONG" in text else Status.PASSED
        evaluation = builders.trial(found.task, status, cases=[case(candidate=status)]).evaluation
        assert evaluation is not None
        return evaluation

    monkeypatch.setattr("arena.cli.watch.changes.__defaults__", (pass_time,))
    monkeypatch.setattr("arena.api.evaluation.JudgeClient", FakeJudge)
    monkeypatch.setattr(FakeJudge, "finish", judged)
    done = CliRunner().invoke(app, ["evaluate", "rms_norm", str(kernel), "--watch", "--effort", "correctness"])
    ended = [line.split(": ", 1)[1].split(",")[0] for line in done.stdout.splitlines() if line.startswith("triton2")]
    assert ended == ["seen only", "failed: wrong result", "seen only"] and done.exit_code == 0
    assert len(judges) == 4 and len({id(judge) for judge in judges}) == 1
    assert "no verdict: the device fell over" in done.output


GCC = """kernel.hip:23: warning: no return statement in function returning non-void [-Wreturn-type]
   23 | }
matrix.h:4: warning: unused variable 'a' [-Wunused-variable]
    4 | int a;
kernel.hip:23: warning: no return statement in function returning non-void [-Wreturn-type]
   23 | }
"""
CLANG = """kernel.hip:23:1: warning: non-void function does not return a value [-Wreturn-type]
   23 | }
      | ^
1 warning generated when compiling for gfx942.
/opt/rocm/include/hip/hip_runtime.h:9:1: warning: deprecated [-Wdeprecated]
"""
NVCC = """kernel.hip(23): warning #940-D: missing return statement at end of non-void function "softmax"
  }
  ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"
"""


@pytest.mark.parametrize("log", [GCC, CLANG, NVCC])
def test_the_compilers_warnings_about_the_candidate_are_shown_once(monkeypatch: pytest.MonkeyPatch, log: str) -> None:
    failed = builders.trial("hip2hip/modules/softmax", Status.CRASH, detail="ended by SIGSEGV").evaluation
    assert failed is not None
    found = replace(failed, compile_log=log)
    monkeypatch.setattr(FakeJudge, "finish", lambda *given: found)
    done = evaluated(monkeypatch, cases=[])
    assert "compile: warnings:\n  kernel.hip" in done.output and done.output.count("kernel.hip") == 1
    assert "matrix.h" not in done.output and "hip_runtime" not in done.output
