"""Does the judge accept the arithmetic that a task allows, and refuse the next shorter one? Ten kernels of six suites.

    python tools/arithmetic_candidates.py [--platform cuda] [--only attention]

Each starting kernel is evaluated twice. `allowed` rounds operands of its matrix products to the dtype of the inputs,
as serving engines do; `below` rounds them to the next shorter format: fp8 for bfloat16, bfloat16 for float16, TF32 for
float32.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from arena.judge.process.client import JudgeClient
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options

OPTIONS = Options(heldout=False, effort=Effort.CORRECTNESS, seeds=1)
INPUTS = {
    "attention/unified_attention_2d": "query_ptr",
    "attention/flash_prefill_attention": "query_ptr",
    "attention/decode_attn_grouped_stage1": "query_ptr",
    "fundamentals/flash_attention_fwd": "query_ptr",
    "gemm/bmm": "a_ptr",
    "gemm/lora_shrink": "x_ptr",
    "linear_attention/lightning_attn_kv_parallel": "key_ptr",
    "linear_attention/kda_dot_kkt_inter": "key_ptr",
    "moe/fused_moe": "x_ptr",
    "state_space/ssd_chunk_scan": "x_ptr",
}
"""the tasks, with the argument of the kernel whose dtype is that of the inputs"""
OPERAND = {
    "allowed": """

@triton.jit
def _operand(values, dtype: tl.constexpr):
    return values.to(dtype)
""",
    "below": """

@triton.jit
def _operand(values, dtype: tl.constexpr):
    dropped: tl.constexpr = 20 if dtype == tl.bfloat16 else (16 if dtype == tl.float16 else 13)
    bits = values.to(tl.float32).to(tl.int32, bitcast=True)
    half = (1 << (dropped - 1)) - 1 + ((bits >> dropped) & 1)
    return (((bits + half) >> dropped) << dropped).to(tl.float32, bitcast=True)
""",
}
EXPECTED = {"allowed": Status.PASSED, "below": Status.WRONG_RESULT}
_DOT = "tl.dot("


def rounding(kernel: str, pointer: str, variant: str) -> str:
    """Return a kernel whose products have rounded operands.

    Args:
        kernel: Source of a Triton kernel.
        pointer: The argument whose element type is that of the inputs.
        variant: A name of `OPERAND`.
    """
    head, *calls = kernel.split(_DOT)
    parts = [head.replace("import triton.language as tl\n", f"import triton.language as tl\n{OPERAND[variant]}", 1)]
    for call in calls:
        first, second, rest = _two_arguments(call)
        operands = ", ".join(f"_operand({one}, {pointer}.dtype.element_ty)" for one in (first, second))
        parts.append(f"{operands}{rest}")
    return _DOT.join(parts)


def _two_arguments(call: str) -> tuple[str, str, str]:
    """The first two arguments of a call whose name and parenthesis are cut off, and what follows them."""
    found, depth, begin = [], 0, 0
    for at, character in enumerate(call):
        if depth == 0 and character in ",)":
            found.append(call[begin:at].strip())
            begin = at + 1
            if len(found) == 2:
                return found[0], found[1], call[at:]
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
    raise ValueError(f"a product has two operands: {call[:80]}")


def candidates(only: str, folder: Path) -> Iterator[tuple[Path, str, Path]]:
    """Write the candidates; yield task, variant and file of each."""
    for name, pointer in INPUTS.items():
        if only in name:
            task = TASKS / "triton2triton" / name
            kernel = load_task(task).baseline_kernel
            assert kernel is not None
            for variant in OPERAND:
                file = folder / name / variant / kernel.name
                file.parent.mkdir(parents=True)
                file.write_text(rounding(kernel.read_text(encoding="utf-8"), pointer, variant), encoding="utf-8")
                yield task, variant, file


def main() -> int:
    """Evaluate all, print what was found of each, and return 1 where one is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="auto")
    parser.add_argument("--only", default="", help="tasks whose name holds this")
    asked = parser.parse_args()
    good = count = 0
    with tempfile.TemporaryDirectory() as folder, JudgeClient(asked.platform) as judge:
        for task, variant, file in candidates(asked.only, Path(folder)):
            evaluation = judge.evaluate(task, file, OPTIONS)
            worst = max((case.error_ratio for case in evaluation.cases if case.error_ratio is not None), default=0.0)
            said = (
                evaluation.failure.detail
                if evaluation.failure is not None
                else f"worst error {worst:.2f} of the tolerance"
            )
            right = evaluation.status is EXPECTED[variant]
            good, count = good + right, count + 1
            mark = "" if right else f"  <- expected {EXPECTED[variant]}"
            print(f"{task.parent.name}/{task.name} {variant}: {evaluation.status}: {said}{mark}", flush=True)
    print(f"{good} of {count} as expected")
    return int(good != count)


if __name__ == "__main__":
    sys.exit(main())
