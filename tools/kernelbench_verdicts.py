"""Judge a right, a wrong and a cheating kernel for problems of KernelBench, with PyTorch as the baseline.

    arena import kernelbench ~/KernelBench --level 1 --type torch2triton --trust --out imported
    python tools/kernelbench_verdicts.py imported --platform cuda --out verdicts.json

Twenty-one problems of level 1 have kernels here: activations, softmax, RMS normalization and reductions. A wrong
kernel leaves out the last, incomplete block. Cheats differ from problem to problem: an operator of PyTorch instead of a
kernel, sizes of seen cases alone, or a result that is left to recycled memory. An interrupted
call continues with what the file does not have.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import arena
from arena import Status
from arena.results.record import Evaluation
from arena.task.corpus.corpora import open_corpora
from arena.task.definition import Case, arguments

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
POINTWISE = """@triton.jit
def _pointwise(x, y, n, s, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, {formula}, mask=at < n)


def {entry}({inputs}, y):
    n = {x}.numel(){leave}
    _pointwise[({blocks},)]({x}, y, n, {scalar}, BLOCK=1024, num_warps=4)
"""
ROWS = """@triton.jit
def _rows(x, y, n, columns, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        v = tl.load(x + first + begin + at, mask=begin + at < n, other=float("-inf"))
        more = tl.maximum(most, v)
        known = more > float("-inf")
        total = tl.where(known, total * tl.exp(most - more) + tl.exp(v - more), 0.0)
        most = more
    top = tl.max(most)
    total = tl.sum(tl.where(most > float("-inf"), total * tl.exp(most - top), 0.0))
    for begin in range(0, n, BLOCK):
        v = tl.load(x + first + begin + at, mask=begin + at < n)
        tl.store(y + first + begin + at, {formula}, mask=begin + at < n)


def {entry}({inputs}, y):
    rows, columns = {x}.shape
    n = columns{leave}
    _rows[(rows,)]({x}, y, n, columns, BLOCK=4096, num_warps=8)
"""
REDUCTION = """@triton.jit
def _reduce(x, y, n, outer_stride, inner, start: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x += tl.program_id(0).to(tl.int64) * outer_stride
    total = tl.full((BLOCK,), start, tl.float32)
    for k in range(n):
        v = tl.load(x + k * inner + at, mask=at < inner, other=0.0)
        total = {step}
    tl.store(y + tl.program_id(0).to(tl.int64) * inner + at, {formula}, mask=at < inner)


def {entry}({inputs}, y):
    outer, depth, inner = {x}.shape
    n = depth{leave}
    _reduce[(outer, triton.cdiv(inner, 256))]({x}, y, n, depth * inner, inner, {start}, BLOCK=256, num_warps=4)
"""
RMS = """@triton.jit
def _rms(x, y, n, features, inner, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x += tl.program_id(0).to(tl.int64) * features * inner
    y += tl.program_id(0).to(tl.int64) * features * inner
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        v = tl.load(x + k * inner + at, mask=at < inner, other=0.0)
        total += v * v
    scale = 1.0 / tl.sqrt(total / features + 1e-5)
    for k in range(features):
        v = tl.load(x + k * inner + at, mask=at < inner, other=0.0)
        tl.store(y + k * inner + at, v * scale, mask=at < inner)


def {entry}({inputs}, y):
    outer, features, inner = {x}.shape[0], {x}.shape[1], {x}.shape[2] * {x}.shape[3]
    n = features{leave}
    _rms[(outer, triton.cdiv(inner, 256))]({x}, y, n, features, inner, BLOCK=256, num_warps=4)
"""
TANH = "(2.0 * tl.sigmoid(2.0 * ({})) - 1.0)"
POINTWISE_FORMULAS = {
    "p005_matrix_scalar_multiplication": "v * s",
    "p019_relu": "tl.maximum(v, 0.0)",
    "p020_leakyrelu": "tl.where(v > 0, v, 0.01 * v)",
    "p021_sigmoid": "tl.sigmoid(v)",
    "p022_tanh": TANH.format("v"),
    "p025_swish": "v * tl.sigmoid(v)",
    "p026_gelu": "0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))",
    "p027_selu": "1.0507009873554805 * tl.where(v > 0, v, 1.6732632423543772 * (tl.exp(v) - 1.0))",
    "p028_hardsigmoid": "tl.minimum(tl.maximum(v / 6.0 + 0.5, 0.0), 1.0)",
    "p029_softplus": "tl.maximum(v, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(v)))",
    "p030_softsign": "v / (1.0 + tl.abs(v))",
    "p031_elu": "tl.where(v > 0, v, tl.exp(v) - 1.0)",
    "p032_hardtanh": "tl.minimum(tl.maximum(v, -1.0), 1.0)",
    "p088_mingptnewgelu": f"0.5 * v * (1.0 + {TANH.format('0.7978845608028654 * (v + 0.044715 * v * v * v)')})",
}
ROW_FORMULAS = {
    "p023_softmax": "tl.exp(v - top) / total",
    "p024_logsoftmax": "v - top - tl.log(total)",
}
REDUCTIONS = {
    "p047_sum_reduction_over_a_dimension": ("total + v", "total", "0.0"),
    "p048_mean_reduction_over_a_dimension": ("total + v", "total / n", "0.0"),
    "p049_max_reduction_over_a_dimension": ("tl.maximum(total, v)", "total", 'float("-inf")'),
    "p053_min_reduction_over_a_dimension": ("tl.minimum(total, v)", "total", 'float("inf")'),
}
PROBLEMS = (*POINTWISE_FORMULAS, *ROW_FORMULAS, *REDUCTIONS, "p036_rmsnorm")
RIGHT, WRONG = "right", "wrong"
CHEATS = ("an operator of PyTorch", "seen sizes alone", "recycled memory")


def kernel(task: arena.Task, *, complete: bool = True) -> str:
    """Return a Triton kernel for a problem; one that is not `complete` leaves out the end of what it reads."""
    name, inputs = task.entry, [one.name for one in task.inputs]
    common = {"entry": name, "inputs": ", ".join(inputs), "x": inputs[0]}
    common["leave"] = "" if complete else " - 1"
    if name in POINTWISE_FORMULAS:
        scalar = inputs[1] if len(inputs) > 1 else "0.0"
        blocks = "triton.cdiv(n, 1024)"
        return HEAD + POINTWISE.format(formula=POINTWISE_FORMULAS[name], scalar=scalar, blocks=blocks, **common)
    if name in ROW_FORMULAS:
        return HEAD + ROWS.format(formula=ROW_FORMULAS[name], **common)
    if name in REDUCTIONS:
        step, formula, start = REDUCTIONS[name]
        return HEAD + REDUCTION.format(step=step, formula=formula, start=start, **common)
    return HEAD + RMS.format(**common)


def cheat(task: arena.Task, which: str) -> str:
    """Return a kernel that does not do the work on every input, and looks fast."""
    honest, entry = kernel(task), f"def {task.entry}("
    inputs = ", ".join(one.name for one in task.inputs)
    first = task.inputs[0].name
    if which == "recycled memory":
        return f"import torch\nimport triton\n\n\n{entry}{inputs}, y):\n    torch.empty_like(y)\n"
    renamed = honest.replace(entry, "def _honest(")
    if which == "seen sizes alone":
        sizes = {first_shape(task, case) for case in task.seen}
        body = f"    if tuple({first}.shape) in {sorted(sizes)}:\n        _honest({inputs}, y)\n"
    else:
        body = f"    y.copy_(torch.relu({first}).reshape(-1)[: y.numel()].view_as(y))\n"
    return f"{renamed}\n\n{entry}{inputs}, y):\n{body}"


def first_shape(task: arena.Task, case: Case) -> tuple[int, ...]:
    """Return the shape of the first input in a case."""
    return arguments(task, case).inputs[0].shape


def candidates(task: arena.Task, number: int) -> dict[str, str]:
    """Return the three kernels of a problem by what they are."""
    which = CHEATS[number % len(CHEATS)]
    return {RIGHT: kernel(task), WRONG: kernel(task, complete=False), f"cheat: {which}": cheat(task, which)}


def verdict(task: arena.Task, name: str, found: Evaluation, seconds: float) -> dict[str, object]:
    """Return what is kept of an evaluation: the first stage that failed, and every speedup."""
    failed = next((one for one in found.verdicts if one.status is not Status.PASSED), None)
    speedups = [case.speedup.value for case in found.cases if case.speedup is not None]
    return {
        "task": task.id,
        "candidate": name,
        "stage": failed.stage.value if failed else "",
        "status": failed.status.value if failed else "passed",
        "detail": failed.detail if failed else "",
        "speedups": [round(value, 3) for value in speedups],
        "seconds": round(seconds, 1),
        "device": found.environment.device.name,
    }


def judged(tasks: Sequence[arena.Task], judge: arena.Judge, out: Path) -> int:
    """Judge what the file does not have yet, print and keep a line for each; returns how many surprise."""
    known = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.is_file() else []
    done, surprises = {(line["task"], line["candidate"]) for line in known}, 0
    for number, task in enumerate(tasks):
        for name, text in candidates(task, number).items():
            if (task.id, name) in done:
                continue
            began = time.monotonic()
            line = verdict(task, name, judge.evaluate(task, text).evaluation, time.monotonic() - began)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            surprises += (line["status"] == "passed") != (name == RIGHT)
            print(f"{task.entry:40} {name:30} {line['status']:16} {line['stage']:12} {line['seconds']} s", flush=True)
    return surprises


def main() -> None:
    """Judge them, and say where a verdict surprises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder that `arena import kernelbench` has written")
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    parser.add_argument(
        "--out", type=Path, required=True, help="verdicts, a JSON line each; what it has is not repeated"
    )
    given = parser.parse_args()
    corpora = open_corpora((given.corpus,))
    tasks = [corpora.load(name) for name in corpora.ids if name.rsplit("/", 1)[-1] in PROBLEMS]
    with arena.Judge(given.platform, corpora=(given.corpus,)) as judge:
        surprises = judged(tasks, judge, given.out)
    if surprises:
        sys.exit(f"{surprises} verdicts are not as expected")


if __name__ == "__main__":
    main()
