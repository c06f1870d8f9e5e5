"""Peak bandwidth and arithmetic rates of known devices, from their makers' data sheets.

Dense, boost clock, no sparsity. Rates in TFLOP/s (TOP/s for int8), the faster of the vector and matrix units; bandwidth
in GB/s; cache in bytes. They are upper bounds, which is what a roofline floor needs. An MI250X answers to HIP as two
devices: the row is one of them. A rate without a source is left out; a bound by bandwidth then remains.

No row: the MI308X, of which AMD publishes no data sheet. FP8 on RDNA 4, FP64 on RDNA 4 and the W7900, and INT8 on the
B300 are left out, since no source or contradicting ones were found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

MIB = 1024 * 1024


@dataclass(frozen=True)
class Peaks:
    """Data-sheet figures of one product; `cache_bytes` is 0 where only the runtime tells the last-level cache."""

    product: str
    arch: str
    bandwidth_gbs: float
    cache_bytes: int
    tflops: dict[str, float]
    source: str
    compute_units: int = 0
    """of the whole product, where it can be partitioned into several devices; else 0"""


def _rates(fp64: float, fp32: float, tf32: float, fp16: float, fp8: float, int8: float) -> dict[str, float]:
    rates = {
        "float64": fp64,
        "float32": fp32,
        "tf32": tf32,
        "float16": fp16,
        "bfloat16": fp16,
        "float8_e4m3fn": fp8,
        "float8_e4m3fnuz": fp8,
        "float8_e5m2": fp8,
        "int8": int8,
    }
    return {name: rate for name, rate in rates.items() if rate}


_CDNA2 = "AMD Instinct {} accelerator data sheet (CDNA 2), per device as HIP counts them"
_CDNA3 = "AMD Instinct {} accelerator data sheet (CDNA 3)"
_CDNA3_UNITS = 304
_CDNA4_UNITS = 256
# FLOPs per clock and compute unit (GPUOpen, "Using the Matrix Cores of AMD RDNA 4"): RDNA 3 512 for FP16, BF16, INT8;
# RDNA 4 1024, and 2048 for INT8. Float32 is a half and a quarter of FP16.
_RDNA = "AMD {} specifications: compute units, boost clock, bandwidth; matrix rates per clock from GPUOpen"
_HOPPER = "NVIDIA {} Tensor Core GPU data sheet, SXM, figures with sparsity halved"

PEAKS: tuple[Peaks, ...] = (
    Peaks("MI210", "gfx90a", 1638.4, 8 * MIB, _rates(45.3, 45.3, 0, 181.0, 0, 181.0), _CDNA2.format("MI210")),
    Peaks("MI250X", "gfx90a", 1638.4, 8 * MIB, _rates(47.9, 47.9, 0, 191.5, 0, 191.5), _CDNA2.format("MI250X")),
    Peaks(
        "MI300X",
        "gfx942",
        5300.0,
        256 * MIB,
        _rates(163.4, 163.4, 653.7, 1307.4, 2614.9, 2614.9),
        _CDNA3.format("MI300X"),
        _CDNA3_UNITS,
    ),
    Peaks(
        "MI325X",
        "gfx942",
        6000.0,
        256 * MIB,
        _rates(163.4, 163.4, 653.7, 1307.4, 2614.9, 2614.9),
        _CDNA3.format("MI325X"),
        _CDNA3_UNITS,
    ),
    Peaks(
        "MI355X",
        "gfx950",
        8000.0,
        256 * MIB,
        _rates(78.6, 157.3, 0, 2516.6, 5033.2, 5033.2),
        "AMD Instinct MI355X GPU data sheet (CDNA 4)",
        _CDNA4_UNITS,
    ),
    Peaks(
        "MI350X",
        "gfx950",
        8000.0,
        256 * MIB,
        _rates(72.1, 144.2, 0, 2306.9, 4613.7, 4613.7),
        "AMD Instinct MI355X GPU data sheet (CDNA 4), rates times 2.2/2.4 GHz (AMD at Hot Chips 2025)",
        _CDNA4_UNITS,
    ),
    Peaks(
        "MI300A",
        "gfx942",
        5300.0,
        256 * MIB,
        _rates(122.6, 122.6, 490.3, 980.6, 1961.2, 1961.2),
        "AMD Instinct MI300A APU data sheet (CDNA 3); TF32 and FP8 from the MI300X, 228 of 304 compute units",
        228,
    ),
    Peaks(
        "RX 9070 XT",
        "gfx1201",
        640.0,
        64 * MIB,
        _rates(0, 48.7, 0, 194.6, 0, 389.3),
        _RDNA.format("Radeon RX 9070 XT"),
    ),
    Peaks(
        "RX 9070",
        "gfx1201",
        640.0,
        64 * MIB,
        _rates(0, 36.1, 0, 144.5, 0, 289.0),
        _RDNA.format("Radeon RX 9070"),
    ),
    Peaks(
        "PRO W7900",
        "gfx1100",
        864.0,
        96 * MIB,
        _rates(0, 61.3, 0, 122.6, 0, 122.6),
        _RDNA.format("Radeon PRO W7900"),
    ),
    Peaks(
        "RX 7900 XTX",
        "gfx1100",
        960.0,
        96 * MIB,
        _rates(1.9, 61.4, 0, 122.8, 0, 122.8),
        "AMD Radeon RX 7900 XTX specifications (RDNA 3)",
    ),
    Peaks(
        "A100",
        "sm_80",
        2039.0,
        40 * MIB,
        _rates(19.5, 19.5, 156.0, 312.0, 0, 624.0),
        "NVIDIA A100 80GB Tensor Core GPU data sheet, SXM",
    ),
    Peaks("H100", "sm_90", 3350.0, 50 * MIB, _rates(67.0, 67.0, 494.7, 989.4, 1978.9, 1978.9), _HOPPER.format("H100")),
    Peaks(
        "H100 NVL",
        "sm_90",
        3938.0,
        50 * MIB,
        _rates(60.0, 60.0, 417.5, 835.5, 1670.5, 1670.5),
        "NVIDIA H100 Tensor Core GPU data sheet, NVL, figures with sparsity halved",
    ),
    Peaks("H200", "sm_90", 4800.0, 60 * MIB, _rates(67.0, 67.0, 494.7, 989.4, 1978.9, 1978.9), _HOPPER.format("H200")),
    Peaks(
        "B200",
        "sm_100",
        8000.0,
        126 * MIB,
        _rates(40.0, 80.0, 1125.0, 2250.0, 4500.0, 4500.0),
        "NVIDIA Blackwell (HGX B200) data sheet, per GPU, figures with sparsity halved",
    ),
    Peaks(
        "B300",
        "sm_103",
        8000.0,
        0,
        _rates(1.25, 75.0, 1125.0, 2250.0, 4500.0, 0),
        "NVIDIA HGX B300 data sheet, per GPU, dense, as tabulated by glennklockwood.com/garden/processors/B300",
    ),
    Peaks(
        "RTX PRO 6000 Blackwell",
        "sm_120",
        1792.0,
        128 * MIB,
        _rates(1.97, 126.0, 251.9, 503.8, 1007.6, 1007.6),
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition (the fastest of three), as tabulated by hmc-tech.com",
    ),
)


# The memory-side cache (Infinity Cache) of the largest product of an arch, from AMD's data sheets; CDNA 2 has none.
_MEMORY_SIDE_CACHE = {
    "gfx942": 256 * MIB,
    "gfx950": 256 * MIB,
    "gfx1030": 128 * MIB,
    "gfx1100": 96 * MIB,
    "gfx1101": 64 * MIB,
    "gfx1102": 32 * MIB,
    "gfx1151": 32 * MIB,
    "gfx1200": 32 * MIB,
    "gfx1201": 64 * MIB,
}


def memory_side_cache(arch: str) -> int:
    """Bytes of cache between L2 and memory that a device of this arch may have: for one that is not in the table.

    Runtimes do not tell it, and a name is not always known (`AMD Radeon Graphics`); a cache taken for smaller than it
    is would be measured warm.
    """
    return _MEMORY_SIDE_CACHE.get(arch, 0)


def find_peaks(name: str, arch: str) -> Peaks | None:
    """The row whose product stands in the device's name and whose arch agrees; None for a device not in the table."""
    rows = [row for row in PEAKS if row.arch == arch and _named(row.product, name)]
    return max(rows, key=lambda row: len(row.product), default=None)


def of_partition(row: Peaks, compute_units: int) -> Peaks:
    """Return the bounds of a device that shows this many compute units of a product that can be partitioned.

    Rates are the device's share of the product's. Bandwidth and cache stay whole: both belong to the memory, and with
    NPS1 every partition reaches all of it. HIP does not tell the memory mode, and in NPS4 they are bounds as well.
    Sources: AMD, "Deep dive into the MI300 compute and memory partition modes" and "MI300X GPU Partitioning Overview".

    Args:
        row: the whole product.
        compute_units: what the runtime counts; 0 where it does not.
    """
    if not 0 < compute_units < row.compute_units:
        return row
    share = compute_units / row.compute_units
    source = f"{row.source}; partition with {compute_units} of {row.compute_units} compute units"
    return replace(row, tflops={name: rate * share for name, rate in row.tflops.items()}, source=source)


def _named(product: str, name: str) -> bool:
    """Return whether a device's name holds the product's as words of its own: a GH200 is no H200."""
    words = r"\s*".join(map(re.escape, product.split()))
    return re.search(rf"(?<![A-Za-z0-9]){words}(?![A-Za-z0-9])", name, re.IGNORECASE) is not None
