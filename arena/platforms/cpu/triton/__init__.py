"""Triton's interpreter, mended, so that the CPU platform gives the answers that a GPU gives.

`install()` runs once in the kernel process, before any candidate is imported. `MENDS` says what it changes.
"""

from arena.platforms.cpu.triton.installer import install
from arena.platforms.cpu.triton.mends import MENDS, SUPPORTED, Mend, describe

__all__ = ["MENDS", "SUPPORTED", "Mend", "describe", "install"]
