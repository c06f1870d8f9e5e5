"""A wrong signature is found before any case, and said in two lines: what is expected, and what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.judge.compile.signature import other_names, wrong_signature
from arena.judge.process.client import JudgeClient
from arena.results.messages import bare, code_of
from arena.results.verdict import Stage, Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options

RMS_NORM, SOFTMAX = TASKS / "triton2triton/normalization/rms_norm", TASKS / "hip2hip/modules/softmax"
QUICK = Options(heldout=False, seeds=1, max_work=2e4, effort="correctness")  # type: ignore[arg-type]
WANTED = 'extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream)'


@pytest.mark.parametrize(
    "found", ["rms_norm(x, weight, y)", "rms_norm(x, weight, eps, y, n)", "rms_norm(x, weight, *, y, eps)"]
)
def test_of_a_triton_kernel(tmp_path: Path, cpu_judge: JudgeClient, found: str) -> None:
    text = (RMS_NORM / "kernel.py").read_text(encoding="utf-8")
    kernel = tmp_path / "kernel.py"
    kernel.write_text(text.replace("def rms_norm(x, weight, eps, y)", f"def {found}"), encoding="utf-8")
    evaluation = cpu_judge.evaluate(RMS_NORM, kernel, QUICK)
    (verdict,) = evaluation.verdicts
    expected = "expected def rms_norm(x, weight, eps, y), with arguments by position"
    assert (verdict.stage, verdict.status) == (Stage.COMPILE, Status.LOAD_ERROR)
    assert bare(verdict.detail) == f"{expected}\nfound    def {found}"
    assert code_of(verdict.detail) == "wrong_signature"
    assert not any(case.detail for case in evaluation.cases)


def test_of_a_hip_kernel(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    text = (SOFTMAX / "kernel.hip").read_text(encoding="utf-8")
    kernel = tmp_path / "kernel.hip"
    kernel.write_text(text.replace(", hipStream_t stream)", ")").replace(", 0, stream>>>", ">>>"), encoding="utf-8")
    (verdict,) = cpu_judge.evaluate(SOFTMAX, kernel, QUICK).verdicts
    found = WANTED.replace(", hipStream_t stream", "")
    assert (
        verdict.status is Status.COMPILE_ERROR
        and bare(verdict.detail) == f"expected {WANTED}\nfound    {found}, kernel.hip:27"
    )


@pytest.mark.parametrize(
    "log",
    [
        "kernel.hip:3:23: error: conflicting types for 'softmax'",
        'task.h(14): error: more than one instance of overloaded function "softmax" has "C" linkage',
    ],
)
def test_of_other_compilers(log: str) -> None:
    task = load_task(SOFTMAX)
    entry = 'extern "C" hipError_t softmax(\n    const T* x, // in\n    T* y) {\n  return softmax(1); }'
    text = f'#include "task.h"\n// softmax(a) {{\n{entry}'
    said = wrong_signature(task, text, log, "kernel.hip")
    assert said == f'expected {WANTED}\nfound    extern "C" hipError_t softmax( const T* x, T* y), kernel.hip:3'
    assert not wrong_signature(task, text, log.replace("softmax", "other"), "kernel.hip")
    assert not wrong_signature(task, "no entry", log, "kernel.hip")


def test_of_parameters_in_another_order(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    text = (SOFTMAX / "kernel.hip").read_text(encoding="utf-8")
    kernel = tmp_path / "kernel.hip"
    kernel.write_text(text.replace("int64_t M, int64_t N, hipStream_t", "int64_t N, int64_t M, hipStream_t"))
    evaluation = cpu_judge.evaluate(SOFTMAX, kernel, QUICK)
    said = evaluation.compile_log.splitlines()
    assert evaluation.status in (Status.WRONG_RESULT, Status.OUT_OF_BOUNDS, Status.CRASH)
    assert said[0].startswith("kernel.hip:27: warning: parameters have other names or another order than the task's")
    assert said[1:3] == [f"expected {WANTED}", f"found    {WANTED.replace('M, int64_t N', 'N, int64_t M')}"]


def test_of_parameters_with_other_names() -> None:
    task, text = load_task(RMS_NORM), "def rms_norm({}):\n    pass\n"
    assert not other_names(task, text.format("x, weight, eps, y"), "kernel.py")
    assert not other_names(task, text.format("x, weight, eps, y").replace("def rms", "def other"), "kernel.py")
    assert not other_names(task, "def rms_norm(", "kernel.py")
    said = other_names(task, "import torch\n" + text.format("x, w, y, eps: float = 1.0"), "kernel.py").splitlines()
    assert said[0].startswith("kernel.py:2: warning: ")
    assert said[1:] == ["expected def rms_norm(x, weight, eps, y)", "found    def rms_norm(x, w, y, eps)"]


def test_a_right_kernel_may_name_its_parameters_as_it_likes(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    text = (SOFTMAX / "kernel.hip").read_text(encoding="utf-8")
    kernel = tmp_path / "kernel.hip"
    entry = text[text.index('extern "C"') :]
    kernel.write_text(text.replace(entry, entry.replace("int64_t M", "int64_t rows").replace("M)", "rows)")))
    evaluation = cpu_judge.evaluate(SOFTMAX, kernel, QUICK)
    assert "another order" not in evaluation.compile_log
