"""What tools/time_kernels.py times, keeps and shows; the timing itself needs a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from arena.task.definition import arguments
from arena.task.numerics.reference import Reference
from tests.tools import load

time_kernels = load("time_kernels")
KERNEL, EXPERT = time_kernels.KERNEL, time_kernels.EXPERT
NAME = "triton2triton/fundamentals/add"


@pytest.fixture
def work(tmp_path: Path) -> Any:
    """One task with a variant."""
    folder = tmp_path / "variants" / NAME
    folder.mkdir(parents=True)
    (folder / "wide.py").write_text("# another")
    (one,) = time_kernels.gathered([NAME], tmp_path / "variants", "sm_90")
    return one


def test_kernel_expert_and_variants_are_timed_on_timed_cases(work: Any) -> None:
    assert list(work.files) == [KERNEL, EXPERT, "wide"]
    assert work.cases == tuple(case for case in work.task.seen if case.timed)
    (both,) = time_kernels.gathered([NAME], None, "sm_90", heldout=True)
    assert both.cases == work.cases + tuple(case for case in work.task.heldout if case.timed)


def test_hip_tasks_are_timed_beside_pytorch() -> None:
    (hip,) = time_kernels.gathered(["hip2hip/modules/softmax"], None, "sm_90")
    assert list(hip.files) == [KERNEL, EXPERT, "pytorch"]
    (torch_one,) = time_kernels.gathered(["torch2hip/modules/softmax"], None, "sm_90", torch_compile=True)
    assert list(torch_one.files) == [KERNEL, EXPERT, "torch_compile"]
    reference = torch_one.task.reference_path
    assert hip.files["pytorch"] == hip.task.reference_path and torch_one.files[KERNEL] == reference


def test_what_has_a_figure_is_not_due_until_its_file_changes(work: Any) -> None:
    case = work.cases[0]
    records = [
        {"task": NAME, "case": case.id, "label": label, "digest": work.digest(label), "ms": 1.0} for label in work.files
    ]
    assert time_kernels.due(work, case, []) == list(work.files)
    assert time_kernels.due(work, case, records) == []
    work.files["wide"].write_text("# yet another")
    assert time_kernels.due(work, case, records) == [KERNEL, "wide"], "beside the kernel that it is compared with"
    assert time_kernels.due(work, case, [records[0] | {"fatal": True}, *records[1:]]) == ["wide"]


def test_the_last_record_of_a_file_and_case_counts_and_is_shown(tmp_path: Path) -> None:
    common = {"task": NAME, "case": "seen-01", "roofline_ms": 1.0, "status": "passed"}
    lines: list[dict[str, Any]] = [
        {"label": KERNEL, "ms": 4.0},
        {"label": "wide", "ms": 4.0},
        {"label": "wide", "ms": 2.0},
        {"label": "broken", "status": "y is not written"},
    ]
    out = tmp_path / "times.jsonl"
    out.write_text("".join(json.dumps(common | line) + "\n" for line in lines))
    assert time_kernels.table(time_kernels.kept(out)) == (
        f"{NAME} seen-01: kernel 4.0000 ms 0.25; wide 2.00x 0.50; broken 0.0000 ms [y is not written]"
    )


@pytest.mark.parametrize(
    ("name", "label"), [("torch2hip/modules/softmax", KERNEL), ("hip2hip/modules/gelu", "pytorch")]
)
def test_a_kernel_is_checked_in_this_process(monkeypatch: pytest.MonkeyPatch, name: str, label: str) -> None:
    """By PyTorch on the CPU: drawn inputs, the binding and the comparison are those of the device."""
    monkeypatch.setattr(time_kernels, "SET_BYTES", 1 << 16)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    (one,) = time_kernels.gathered([name], None, "cpu")
    case = min(one.task.seen, key=lambda each: arguments(one.task, each).num_bytes)
    timer = time_kernels.CaseTimer(arguments(one.task, case), Reference(one.task.reference_path))
    nothing: Any = SimpleNamespace()
    status, error_ratio = timer.checked(time_kernels.loaded(one, label, case, nothing))
    timer.close()
    assert status == "passed"
    assert error_ratio is not None and error_ratio < 1
