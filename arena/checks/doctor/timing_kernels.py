"""Kernels of known duration as tasks, written into a folder so that they take the path that every candidate takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path

from arena.checks.doctor.evidence import DATA

COUNTS = (1, 2, 4, 8, 16)
"""the cost of a kernel's cases, in units of its first"""
TICK_MS = 1e-5
"""what `wall_clock64` counts: 100 MHz on AMD, and so on the other platforms"""
_KINDS = ("edge", "alignment", "dtype", "scale_up", "structure")


class Scale(StrEnum):
    """The source of a kernel's expected cost. In all of them the first case carries what a launch costs."""

    CLOCK = "the device's clock"
    """The kernel waits until the clock register has gone on by a known number of ticks."""
    LINE = "proportion"
    """The cost is proportional to a count; expected is the line through the first and the last case."""


_TASK = """\
name: {name}
summary: A kernel of known duration, for `arena doctor --timing`.
entry: {name}
axes:
  {axes}
inputs:
  {tensors}
work: {{flops: 1, bytes: 4}}
"""


@dataclass(frozen=True)
class DurationKernel:
    """One kernel. `unit_gpu` and `unit_cpu`: the count of its first case, about 10 µs on a GPU and 10 ms on the CPU.

    None where a platform does not run it: a copy by an emulation meets its caches, and is proportional to nothing.
    """

    name: str
    task_type: str
    axes: str
    tensors: str
    reference: str
    scale: Scale
    unit_gpu: int
    unit_cpu: int | None

    def unit(self, *, emulated: bool) -> int:
        """The count of the first case."""
        found = self.unit_cpu if emulated else self.unit_gpu
        assert found is not None, "not run on this platform"
        return found

    def write(self, root: Path, *, emulated: bool) -> Path:
        """Write its task below `root`; the held-out cases, which a task must have, are not run."""
        folder = root / self.task_type / "self_check" / self.name
        folder.mkdir(parents=True)
        unit = self.unit(emulated=emulated)
        (folder / "task.yaml").write_text(
            _TASK.format(name=self.name, axes=self.axes, tensors=self.tensors), encoding="utf-8"
        )
        (folder / "reference.py").write_text(self.reference, encoding="utf-8")
        (folder / self.file).write_text(self.text, encoding="utf-8")
        for split, kinds in (("seen", ()), ("heldout", _KINDS)):
            rows = [self._case(count, unit + bool(kinds), kind) for count, kind in zip_longest(COUNTS, kinds)]
            (folder / f"{split}.yaml").write_text("".join(rows), encoding="utf-8")
        return folder

    def _case(self, count: int, unit: int, kind: str | None) -> str:
        """One line of a file of cases: with an axis N, `count` times N; else `count` units in one."""
        axes = f"K: {count}, N: {unit}" if "N:" in self.axes else f"K: {count * unit}"
        return f"- {{kind: {kind}, {axes}}}\n" if kind else f"- {{{axes}, timed: true}}\n"

    @property
    def file(self) -> str:
        """Return what the kernel's file is called."""
        return "kernel.hip" if self.task_type == "hip2hip" else "kernel.py"

    @property
    def text(self) -> str:
        """The kernel."""
        return _LOOP if self.name == "loop" else (DATA / f"{self.name}.hip").read_text(encoding="utf-8")


_ONE = "x: {shape: [1], dtype: float32, fill: normal}\noutputs:\n  y: {shape: [1], dtype: float32}"
_LOOP = '''\
"""A chain of multiplications and additions, each of which needs the one before."""

import triton
import triton.language as tl


@triton.jit
def loop_kernel(x_ptr, y_ptr, count):
    value = tl.load(x_ptr)
    for _ in range(0, count):
        value = value * 0.5 + 0.5
    tl.store(y_ptr, value)


def loop(x, y):
    loop_kernel[(1,)](x, y, x.shape[0])
'''
KERNELS = (
    DurationKernel(
        "spin",
        "hip2hip",
        "K: {doc: ticks to spin for, domain: [1, 100000000]}",
        _ONE,
        "def reference(x):\n    return x + 1\n",
        Scale.CLOCK,
        unit_gpu=1000,
        unit_cpu=1_000_000,
    ),
    DurationKernel(
        "loop",
        "triton2triton",
        "K: {doc: steps of the chain, domain: [1, 100000000]}",
        "x: {shape: [K], dtype: float32, fill: normal}\noutputs:\n  y: {shape: [1], dtype: float32}",
        "def reference(x):\n    return x[:1] * 0.5 ** x.shape[0] + 1\n",
        Scale.LINE,
        unit_gpu=2560,
        unit_cpu=96,
    ),
    DurationKernel(
        "copy",
        "hip2hip",
        "K: {doc: how many times N elements, domain: [1, 64]}\n  N: {doc: elements, domain: [1, 16777216]}",
        "x: {shape: [K, N], dtype: float32, fill: normal}\noutputs:\n  y: {shape: [K, N], dtype: float32}",
        "def reference(x):\n    return x.clone()\n",
        Scale.LINE,
        unit_gpu=1 << 22,
        unit_cpu=None,
    ),
)


def kernels(*, emulated: bool) -> tuple[DurationKernel, ...]:
    """Those that such a device runs."""
    return tuple(kernel for kernel in KERNELS if not emulated or kernel.unit_cpu is not None)
