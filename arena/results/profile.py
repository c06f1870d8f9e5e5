"""Where the time of one call goes, kernel by kernel: feedback for whoever writes the kernel, never a score.

The figures come from the process that runs the candidate, which can say what it likes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from arena.results.bounds import Number, Whole
from arena.results.portability import KernelUse


@dataclass(frozen=True)
class KernelTime:
    """One kernel of a profiled call: how often it ran, and for how long in all, in microseconds of the device.

    `grid` in blocks and `block` in threads, of its first launch; empty where the profiler does not tell.
    """

    kernel: str
    calls: Whole
    device_us: Number
    grid: tuple[Whole, ...] = ()
    block: tuple[Whole, ...] = ()


@dataclass(frozen=True)
class Counters:
    """Hardware counters of one call, over all its kernels; None where the tool did not tell.

    Percentages are means weighted by the kernels' times. AMD's and NVIDIA's counters of one row are alike, not equal.
    """

    kernel_us: Number | None = None
    """microseconds of the kernels, under the tool, which may lock clocks or flush caches"""
    occupancy_pct: Number | None = None
    """resident waves or warps, of the most that fit"""
    lds_conflict_pct: Number | None = None
    """of the cycles in which shared memory (LDS) worked, those that bank conflicts added"""
    memory_gbs: Number | None = None
    """read from and written to memory behind the L2, in 10^9 bytes a second; on AMD the Infinity Cache is part of it"""
    l2_gbs: Number | None = None
    """requested of the L2, in 10^9 bytes a second"""
    matrix_pct: Number | None = None
    """of the time, matrix units (MFMA, tensor cores) busy"""
    vector_pct: Number | None = None
    """of the time, vector units (VALU; the busier of NVIDIA's FMA and ALU pipes) busy"""
    scalar_pct: Number | None = None
    """of the time, the scalar unit (SALU, uniform pipe) busy"""


COUNTER_NAMES = {
    "kernel_us": "kernels, µs",
    "occupancy_pct": "occupancy, %",
    "lds_conflict_pct": "bank conflicts of LDS cycles, %",
    "memory_gbs": "memory behind L2, GB/s",
    "l2_gbs": "L2, GB/s",
    "matrix_pct": "matrix units busy, %",
    "vector_pct": "vector units busy, %",
    "scalar_pct": "scalar unit busy, %",
}
"""how a person reads the fields of `Counters`, in their order"""


@dataclass(frozen=True)
class CounterTable:
    """The same counters of the baseline and the candidate, on the profiled case.

    `detail`: why a side has none. `*_roofline`: the fraction of the roofline that was measured, where one is known.
    """

    tool: str
    baseline: Counters | None = None
    candidate: Counters | None = None
    detail: str = ""
    baseline_roofline: Number | None = None
    candidate_roofline: Number | None = None

    def rows(self) -> list[tuple[str, float | None, float | None]]:
        """Return name, baseline and candidate of each counter, and last the percentages of the roofline."""
        found = [
            (name, getattr(self.baseline, field, None), getattr(self.candidate, field, None))
            for field, name in COUNTER_NAMES.items()
        ]
        before, after = (
            None if one is None else 100 * one for one in (self.baseline_roofline, self.candidate_roofline)
        )
        return [*found, ("roofline reached, %", before, after)]


@dataclass(frozen=True)
class Profile:
    """One call of the candidate on the largest seen case that passed.

    `detail` says why there are no `kernels`. `uses`: by GPU that was asked for, what the kernels built for it take of a
    multiprocessor; known without a device. `counters`: where the vendor's tool was asked.
    """

    case: str = ""
    kernels: tuple[KernelTime, ...] = ()
    detail: str = ""
    uses: dict[str, tuple[KernelUse, ...]] = field(default_factory=dict)
    counters: CounterTable | None = None

    def __post_init__(self) -> None:
        if not self.kernels and not self.detail:
            raise ValueError("a profile without kernels says why")
