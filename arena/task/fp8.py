"""The dtype `fp8` of a task: 8 bits with 4 of exponent and 3 of mantissa, in the format that the GPU's units multiply.

That is OCP's (bias 7, up to 448, NaN is all ones) on NVIDIA, on gfx950 and on the CPU platform. gfx942 multiplies an
older one: bias 8, up to 240, no -0, and NaN is what would be -0 (AMD Instinct MI300 ISA guide, "Data Types").
"""

from __future__ import annotations

FP8 = "fp8"
OCP = "float8_e4m3fn"
FNUZ = "float8_e4m3fnuz"
_FNUZ_ARCHS = frozenset({"gfx942"})


def fp8_format(arch: str) -> str:
    """Return the dtype, by PyTorch's name, that `fp8` is on a GPU of this architecture, or on a CPU."""
    return FNUZ if arch in _FNUZ_ARCHS else OCP
