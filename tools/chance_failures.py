"""Which cases may an honest kernel fail by chance? The reference in float32 is judged as a kernel is, on many draws.

    python tools/chance_failures.py                             all tasks whose reference runs in float64, small cases
    python tools/chance_failures.py 'triton2triton/gemm/*' --draws 1000 --seconds 60
    python tools/chance_failures.py --elements 4 --draws 10000 --seconds 20         the likeliest cases, thoroughly
    python tools/chance_failures.py --timed --megabytes 512 --gigaflops 200 --draws 20       larger ones
    python tools/chance_failures.py --timed --megabytes 8192 --gigaflops 1e5 --device cuda   all timed ones

Two kernels are judged: the reference in float32, and with the operands of its products rounded, where the task allows
that. Few draws of a production case see as much as many of a small one: the worst of millions of elements counts.

A result that is nothing but the rounding of what cancels (the gradient of a normalization of two equal values) has
errors as large as itself, and where an output has few elements nothing larger stands beside it. The judge looks closer
at those (conditioning.py); this shows what it does not see through. Cases are named whose worst error is
above half of what is allowed, the margin that `arena tasks check` asks for. Exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import torch

from arena.errors import UsageError
from arena.judge.correctness.conditioning import MARGIN
from arena.judge.correctness.inputs import draw_inputs, secret_generator
from arena.judge.correctness.verify import check_outputs, compared
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.selection import select
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, Precision, Task, arguments
from arena.task.numerics.dtypes import torch_dtype
from arena.task.numerics.reference import Reference

_AT_ONCE = 25


@dataclass(frozen=True)
class Worst:
    """The worst of the draws of one case."""

    case: str
    label: str
    draws: int
    above: int
    """draws whose error was above the margin"""
    error: float
    detail: str


@dataclass(frozen=True)
class Effort:
    """How many draws of which cases: seconds are those of one task."""

    draws: int
    seconds: float
    elements: int
    most_bytes: float = 1 << 20
    most_flops: float = 1e8
    device: str = "cpu"
    timed: bool = False

    def takes(self, given: Arguments) -> bool:
        """Whether the case is small enough, and a result of it too."""
        if self.timed and not given.case.timed:
            return False
        sizes = [tensor.numel for spec in compared(given) if (tensor := given.tensors[spec.name])]
        return given.held_bytes <= self.most_bytes and given.flops <= self.most_flops and min(sizes) <= self.elements


def errors_of_one_draw(
    given: Arguments, in_float32: Arguments, reference: Reference, device: str = "cpu"
) -> tuple[float, str]:
    """Error over allowed error of the reference in both arithmetics, rounded to the outputs' dtypes: the worse."""
    drawn = draw_inputs(given, reference, 1, secret_generator(device))
    inputs = {name: values[0] for name, values in drawn.items()}
    dtypes = {spec.name: tensor.dtype for spec in compared(given) if (tensor := given.tensors[spec.name])}
    expected, found = reference(given, inputs), [reference(in_float32, inputs)]
    if given.operand_format != "float32":
        found.append(reference.in_arithmetic(given, inputs, given.operand_format))
    findings = []
    for results in found:
        outputs = {name: results[name].to(torch_dtype(dtype)) for name, dtype in dtypes.items()}
        findings.append(check_outputs(given, reference, inputs, outputs, expected))
    return max((finding.error_ratio or 0.0, finding.detail) for finding in findings)


def sweep(task: Task, effort: Effort) -> Iterator[Worst]:
    """Every case of a task that is small enough, at most so often as `effort` says, and its share of the seconds."""
    reference = Reference(task.reference_path)
    rough = replace(task, precision=Precision.FLOAT32)
    cases = [case for case in task.cases if effort.takes(arguments(task, case))]
    share_s = effort.seconds / max(1, len(cases))
    for case in cases:
        given, in_float32 = arguments(task, case), arguments(rough, case)
        began, errors = time.monotonic(), list[tuple[float, str]]()
        at_once = _AT_ONCE if given.held_bytes <= Effort.most_bytes and given.flops <= Effort.most_flops else 1
        while len(errors) < effort.draws and (not errors or time.monotonic() - began < share_s):
            more = range(min(at_once, effort.draws - len(errors)))
            errors += [errors_of_one_draw(given, in_float32, reference, effort.device) for _ in more]
        above = sum(error > MARGIN for error, _ in errors)
        yield Worst(case.id, case.label, len(errors), above, *max(errors))


def swept(task_id: str, effort: Effort) -> list[Worst]:
    """For one process of many: the worst of each case."""
    torch.set_num_threads(1)
    return list(sweep(load_task(TASKS / task_id), effort))


def main() -> int:
    """Sweep the tasks and name the cases above the margin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="patterns of task ids")
    parser.add_argument("--draws", type=int, default=400, help="of each case, at most")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each task")
    parser.add_argument("--elements", type=int, default=sys.maxsize, help="only cases with a result of at most so many")
    parser.add_argument(
        "--megabytes", type=float, default=Effort.most_bytes / 2**20, help="of a case's tensors, at most"
    )
    parser.add_argument("--gigaflops", type=float, default=Effort.most_flops / 1e9, help="of a case, at most")
    parser.add_argument("--timed", action="store_true", help="only cases that are timed: those of production")
    parser.add_argument("--device", default="cpu", help="cpu or cuda: where PyTorch draws and computes")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    try:
        chosen = select(open_corpora().ids, asked.tasks or ["*"])
    except UsageError as problem:
        parser.error(str(problem))
    wanted = [i for i in chosen if load_task(TASKS / i).precision is Precision.FLOAT64]
    limits = asked.megabytes * 2**20, asked.gigaflops * 1e9
    effort = Effort(asked.draws, asked.seconds, asked.elements, *limits, asked.device, asked.timed)
    one = partial(swept, effort=effort)
    draws = cases = found = 0
    with ProcessPoolExecutor(asked.processes) as pool:
        for task_id, worst in zip(wanted, pool.map(one, wanted), strict=True):
            cases, draws = cases + len(worst), draws + sum(w.draws for w in worst)
            above = [w for w in worst if w.above]
            found += len(above)
            for w in above:
                counted = f"{w.above} of {w.draws} draws above, worst {w.error:.3g}"
                print(f"{task_id} {w.case} ({w.label}): {counted}", flush=True)
    left = len(chosen) - len(wanted)
    print(f"{draws} draws of {cases} cases of {len(wanted)} tasks, {left} left out, where float32 is the arithmetic;")
    print(f"{found} may fail by chance")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
