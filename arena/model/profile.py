"""Where the time of one call goes, kernel by kernel: feedback for whoever writes the kernel, never a score.

The figures come from the process that runs the candidate, which can say what it likes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from arena.model.portability import KernelUse


@dataclass(frozen=True)
class KernelTime:
    """One kernel of a profiled call: how often it ran, and for how long in all, in microseconds of the device.

    `grid` in blocks and `block` in threads, of its first launch; empty where the profiler does not tell.
    """

    kernel: str
    calls: int
    device_us: float
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


@dataclass(frozen=True)
class Profile:
    """One call of the candidate on the largest seen case that passed.

    `detail` says why there are no `kernels`. `uses`: by GPU that was asked for, what the kernels built for it take of a
    multiprocessor; known without a device.
    """

    case: str = ""
    kernels: tuple[KernelTime, ...] = ()
    detail: str = ""
    uses: dict[str, tuple[KernelUse, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.kernels and not self.detail:
            raise ValueError("a profile without kernels says why")
