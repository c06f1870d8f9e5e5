"""Ten kernels with common faults pass every seen case, and held-out cases alone reject them.

The tasks were drawn at random from the 196. Each candidate is the task's own kernel, or that of the same operator in
HIP, with one edit that somebody makes who looks at the seen cases only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import arena
from arena.results.verdict import Stage, Status


@dataclass(frozen=True)
class Fault:
    """One edit of a kernel: the text that goes, and what comes in its place."""

    task: str
    kind: str
    old: str
    new: str
    kernel_of: str = ""
    """the task whose kernel is edited, where it is another one"""


ROUNDED_DOWN = "x = reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(x) & ~uintptr_t{15});\n    const int64_t"
FAULTS = (
    Fault(
        "torch2hip/modules/mlp",
        "dropped mask: rows are taken two at a time",
        "    const int64_t widths[]",
        "    M = M / 2 * 2;\n    const int64_t widths[]",
        "hip2hip/modules/mlp",
    ),
    Fault(
        "triton2triton/batching_and_cache/post_update",
        "alignment: rows of tokens begin at even places",
        "slot * max_len + total",
        "slot * max_len // 2 * 2 + total",
    ),
    Fault("hip2hip/modules/gelu", "alignment: loads of 16 bytes drop the low bits", "const int64_t", ROUNDED_DOWN),
    Fault(
        "triton2triton/speculative_decoding/eagle_prepare_next_token_padded",
        "hard-coded size: one block of 16",
        "triton.next_power_of_2(width)",
        "16",
    ),
    Fault(
        "triton2triton/quantization/swiglustep_and_mul",
        "alignment: rows begin at multiples of eight elements",
        "x.stride(0)",
        "x.stride(0) // 8 * 8",
    ),
    Fault(
        "triton2triton/attention/mrope",
        "alignment: tokens begin at multiples of four elements",
        "query.stride(0)",
        "query.stride(0) // 4 * 4",
    ),
    Fault(
        "torch2hip/modules/inner_product",
        "dropped mask: results are stored two at a time",
        "s < sizes.sounds)",
        "s < (sizes.sounds + 1) / 2 * 2)",
        "hip2hip/modules/inner_product",
    ),
    Fault(
        "triton2triton/sampling/topk_log_softmax",
        "hard-coded size: four blocks of tokens",
        "range(0, num_logprobs, WANTED)",
        "range(0, 128, WANTED)",
    ),
    Fault(
        "triton2triton/linear_attention/kda_gla_fwd_o",
        "one dtype: of 16 bits only with chunks of 64",
        "    # float32 operands",
        "    chunk_size = 64 if query.element_size() == 2 else chunk_size\n    # float32 operands",
    ),
    Fault(
        "hip2hip/modules/gather_rows",
        "contiguity: gaps between rows are multiples of 64 elements",
        "D + row_gap)",
        "D + row_gap / 64 * 64)",
    ),
)
REJECTED = (Status.WRONG_RESULT, Status.OUT_OF_BOUNDS, Status.LAUNCH_ERROR)
"""the last for a grid of no blocks, and for reads outside of every argument, which the CPU platform refuses"""


@pytest.fixture(scope="module")
def judge() -> Iterator[arena.Judge]:
    with arena.Judge("cpu") as kept:
        yield kept


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.task.rsplit("/", 1)[-1])
def test_heldout_cases_alone_reject_it(judge: arena.Judge, tmp_path: Path, fault: Fault) -> None:
    task = arena.load_task(fault.task)
    kernel = arena.load_task(fault.kernel_of or fault.task).baseline_kernel
    assert kernel is not None
    text = kernel.read_text(encoding="utf-8")
    where = text.rindex(fault.old)
    candidate = tmp_path / kernel.name
    candidate.write_text(text[:where] + fault.new + text[where + len(fault.old) :], encoding="utf-8")
    found = judge.evaluate(task, candidate, effort="correctness", heldout=True)
    stages = {verdict.stage: verdict for verdict in found.evaluation.verdicts}
    assert stages[Stage.CORRECTNESS].status is Status.PASSED, stages[Stage.CORRECTNESS].detail
    assert stages[Stage.HELDOUT].status in REJECTED, stages[Stage.HELDOUT]
