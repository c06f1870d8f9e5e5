"""Where a result was measured. Two records may be mixed only where their environments agree."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class DeviceFacts:
    """What is known of one device. Sizes in bytes, bandwidth in GB/s, peaks in TFLOP/s by number format."""

    platform: str
    vendor: str
    arch: str
    name: str
    wave_size: int
    memory_bytes: int
    last_level_cache_bytes: int
    driver: str = ""
    peak_bandwidth_gbs: float | None = None
    peak_tflops: dict[str, float] = field(default_factory=dict)
    peak_source: str = ""

    @property
    def emulated(self) -> bool:
        """Return whether latencies on this device are those of an emulation."""
        return self.platform == "cpu"

    def roofline_ms(self, flops: float, num_bytes: float, number_format: str) -> float | None:
        """Least time for `flops` and `num_bytes` on this device (Williams et al., 2009), or None without known peaks.

        float32 is bounded by the TF32 matrix rate where there is one, since split-TF32 products reach float32
        accuracy: the bound must hold for every honest kernel.
        """
        bounds = []
        if self.peak_bandwidth_gbs:
            bounds.append(num_bytes / (self.peak_bandwidth_gbs * 1e6))
        formats = ("tf32", "float32") if number_format == "float32" else (number_format,)
        peaks = [self.peak_tflops[name] for name in formats if name in self.peak_tflops]
        if peaks and flops:
            bounds.append(flops / (max(peaks) * 1e9))
        return max(bounds) if bounds else None


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
