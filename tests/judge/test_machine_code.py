"""Machine code for AMD GPUs in an evaluation: executed in a confined worker, right told from wrong, never a gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import UsageError
from arena.judge.process.client import JudgeClient
from arena.platforms.rocm.hip_clang import find_clang
from arena.results.portability import MachineCode, MachineCodeOutcome
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import options_of

RMS_NORM = TASKS / "triton2triton/normalization/rms_norm"
SILU = TASKS / "hip2hip/modules/silu"
OPTIONS = options_of({"effort": "correctness", "seeds": 1, "max_work": 2e4, "targets": ("gfx942",), "execute": True})
needs_clang = pytest.mark.skipif(find_clang() is None, reason="needs a clang++ for AMD GPUs")


def of_gfx942(judge: JudgeClient, task: Path, kernel: str, folder: Path) -> MachineCode:
    """The candidate passes here; what its machine code for gfx942 does."""
    file = folder / load_task(task).task_type.kernel_file
    file.write_text(kernel, encoding="utf-8")
    evaluation = judge.evaluate(task, file, OPTIONS)
    assert evaluation.status is Status.PASSED, evaluation.verdicts[-1].detail
    (build,) = evaluation.targets
    assert build.machine_code is not None, build.detail
    return build.machine_code


@needs_clang
@pytest.mark.slow
@pytest.mark.parametrize("task", [RMS_NORM, SILU], ids=["triton", "hip"])
def test_starting_kernels_are_right(cpu_judge: JudgeClient, tmp_path: Path, task: Path) -> None:
    text = (task / load_task(task).task_type.kernel_file).read_text(encoding="utf-8")
    found = of_gfx942(cpu_judge, task, text, tmp_path)
    assert found.outcome is MachineCodeOutcome.RIGHT, found.detail
    assert found.detail.endswith("of the tolerance") and found.seconds > 0


ON_GFX942 = """
#if defined(__gfx942__)
#define ELSEWHERE(x) {there}
#else
#define ELSEWHERE(x) x
#endif
"""


def silu(there: str) -> str:
    """The starting kernel, with another value in the place of each result on gfx942 alone."""
    text = (SILU / "kernel.hip").read_text(encoding="utf-8")
    changed = text.replace("value / (1.0f + expf(-value))", "ELSEWHERE((value / (1.0f + expf(-value))))")
    assert changed != text
    return ON_GFX942.format(there=there) + changed


@needs_clang
@pytest.mark.slow(but=["value"])
@pytest.mark.parametrize(
    ("there", "outcome", "said"),
    [
        pytest.param("(x) * 1.5f", MachineCodeOutcome.WRONG, "elements wrong", id="value"),
        pytest.param("(x) + ((volatile const float*)64)[0]", MachineCodeOutcome.WRONG, "0x40", id="address"),
        pytest.param(
            '([&]() { asm volatile("s_incperflevel 1"); return x; }())',
            MachineCodeOutcome.NOT_CHECKED,
            "s_incperflevel",
            id="instruction",
        ),
    ],
)
def test_what_differs_on_the_target_alone(
    cpu_judge: JudgeClient, tmp_path: Path, there: str, outcome: MachineCodeOutcome, said: str
) -> None:
    found = of_gfx942(cpu_judge, SILU, silu(there), tmp_path)
    assert found.outcome is outcome and said in found.detail, found


@needs_clang
@pytest.mark.slow
def test_triton_kernels_that_differ_on_the_target(cpu_judge: JudgeClient, tmp_path: Path) -> None:
    text = (RMS_NORM / "kernel.py").read_text(encoding="utf-8")
    spoiled = "import torch\n" + text.replace(
        "columns, eps, BLOCK=", "columns, eps + (9.0 if torch.version.hip else 0.0), BLOCK="
    )
    assert "9.0" in spoiled
    found = of_gfx942(cpu_judge, RMS_NORM, spoiled, tmp_path)
    assert found.outcome is MachineCodeOutcome.WRONG, found


def test_it_needs_a_target_whose_machine_code_is_known() -> None:
    with pytest.raises(UsageError, match="gfx942, gfx950"):
        options_of({"execute": True, "targets": ("sm_90",)})
