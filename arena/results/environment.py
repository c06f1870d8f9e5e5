"""Where a result was measured. Two records may be mixed only where their environments agree."""

from __future__ import annotations

from dataclasses import dataclass, field

from arena.results.bounds import Count, DeviceName, NotNegative

_SPLIT = 3
"""products of a shorter format that make one of float32"""


@dataclass(frozen=True)
class DeviceFacts:
    """What is known of one device. Sizes in bytes, bandwidth in GB/s, peaks in TFLOP/s by number format."""

    platform: DeviceName
    vendor: str
    arch: DeviceName
    name: str
    wave_size: Count
    memory_bytes: Count
    last_level_cache_bytes: Count
    driver: str = ""
    peak_bandwidth_gbs: NotNegative | None = None
    peak_tflops: dict[str, NotNegative] = field(default_factory=dict)
    peak_source: str = ""

    @property
    def emulated(self) -> bool:
        """Return whether latencies on this device are those of an emulation."""
        return self.platform == "cpu"

    def roofline_ms(self, flops: float, num_bytes: float, number_format: str) -> float | None:
        """Least time for `flops` and `num_bytes` on this device (Williams et al., 2009), or None without known peaks.

        A float32 product may be three of TF32 or bfloat16, which reach its accuracy (Ootomo and Yokota, 2022): a third
        of their rate, where that is more. The bound must hold for every honest kernel.
        """
        bounds = []
        if self.peak_bandwidth_gbs:
            bounds.append(num_bytes / (self.peak_bandwidth_gbs * 1e6))
        peak = self._peak_tflops(number_format)
        if peak and flops:
            bounds.append(flops / (peak * 1e9))
        return max(bounds) if bounds else None

    def _peak_tflops(self, number_format: str) -> float:
        known = self.peak_tflops
        if number_format == "float32":
            return max(known.get("float32", 0.0), *(known.get(name, 0.0) / _SPLIT for name in ("tf32", "bfloat16")))
        if number_format == "tf32":
            return max(known.get("tf32", 0.0), self._peak_tflops("float32"))
        return known.get(number_format, 0.0)


@dataclass(frozen=True)
class Environment:
    """Device, libraries and isolation under which a trial ran."""

    device: DeviceFacts
    isolation: str
    versions: dict[str, str] = field(default_factory=dict)

    def comparable_with(self, other: Environment) -> bool:
        """Return whether latencies of the two may stand in one table: same platform, arch and device name."""
        mine, theirs = self.device, other.device
        return (mine.platform, mine.arch, mine.name) == (theirs.platform, theirs.arch, theirs.name)


def ratio_heading(emulated: bool) -> str:
    """Return the heading of a column of speedups; what an emulation takes is no speed."""
    return "emulated ratio" if emulated else "speedup"
