"""Answers of the server: what is told of a task, and that held-out cases are only ever counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from arena.results.record import Evaluation, Split
from arena.results.session import Limits
from arena.results.verdict import Stage, Status, Verdict
from arena.runs.serve.views import final_of, task_view
from arena.task.corpus.task_folder import load_task
from tests.fakes import HERE
from tests.runs.service import examples
from tests.task.corpus.folders import write_task


def test_what_a_client_is_told_of_a_task(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path / "tasks"))
    view = task_view(task, HERE, Limits(evaluations=3, wall_clock_s=150.0))
    assert (view.task, view.task_type, view.kernel_file) == (task.id, "triton2triton", "kernel.py")
    assert view.signature == "def scale(x, bias, alpha, flag, y):"
    assert view.kernel == (task.path / "kernel.py").read_text(encoding="utf-8")
    assert [case.sizes for case in view.seen] == [case.label for case in task.seen]
    assert (view.evaluations, view.minutes) == (3, 2.5)
    assert {"kernel.py", "reference.py", "seen.yaml"} <= set(view.files) and "TASK.md" not in view.files
    assert "# scale" in view.text and view.rules.startswith("- ") and "##" not in view.rules
    told = msgspec.json.encode(view).decode()
    assert "heldout.yaml" not in told and not any(case.id in told for case in task.heldout)


def heldout_results() -> Evaluation:
    """Two seen cases passed; of three held-out ones, two did, and one has a telling label."""
    seen = examples.GOOD.split(Split.SEEN)
    unseen = [replace(case, case=f"heldout-{n:02d}", split=Split.HELDOUT, kind="edge") for n, case in enumerate(seen)]
    lost = examples.failed(9, "M=31337 N=4099 float16", Status.WRONG_RESULT, "at M=31337")
    unseen.append(replace(lost, case="heldout-09", split=Split.HELDOUT, kind="alignment"))
    verdict = Verdict(Stage.HELDOUT, Status.WRONG_RESULT, "M=31337 N=4099 float16: y: error")
    return replace(examples.GOOD, cases=(*seen, *unseen), verdicts=(*examples.GOOD.verdicts, verdict))


def test_heldout_cases_are_counted_and_never_named() -> None:
    final = final_of(heldout_results())
    assert (final.stage_status, final.detail) == (Status.PASSED, "")
    assert final.heldout is not None and (final.heldout.cases, final.heldout.passed) == (3, 2)
    assert final.heldout.speedup == pytest.approx(final.speedup)
    told = msgspec.json.encode(final).decode()
    assert "31337" not in told and "alignment" not in told and "heldout-" not in told
    assert "2 of 3 held-out cases passed" in final.text


@pytest.mark.parametrize(
    ("stage", "status", "detail", "reward"),
    [
        (Stage.COMPILE, Status.COMPILE_ERROR, "", -5.0),
        (Stage.CORRECTNESS, Status.WRONG_RESULT, "of a seen case", -2.0),
        (Stage.PERFORMANCE, Status.IMPLAUSIBLE, "of a seen case", -2.0),
    ],
)
def test_details_of_failures_on_seen_cases_only(stage: Stage, status: Status, detail: str, reward: float) -> None:
    final = final_of(examples.evaluation(fails=Verdict(stage, status, "of a seen case")))
    assert (final.stage_status, final.detail, final.reward, final.heldout) == (status, detail, reward, None)
