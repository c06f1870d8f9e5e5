"""Kernels that tests write themselves, built for the CPU platform."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.toolchains.base import Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.kernel_library import inlined

Array = Any
HEADER = "#pragma once\n#include <stdint.h>\n#include <hip/hip_runtime.h>\n"


def source(kernels: Path, defines: str = "") -> Source:
    """A file whose function `entry` is called, with the headers of the kernel library in it."""
    return Source(defines + inlined(kernels.read_text(encoding="utf-8"), "kernel.hip"), HEADER)


def aligned(values: Array) -> Array:
    """Return a copy at an address that is a multiple of 16 bytes."""
    room = np.empty(values.size + 16, values.dtype)
    start = -room.ctypes.data % 16 // values.itemsize
    kept = room[start : start + values.size].reshape(values.shape)
    kept[...] = values
    return kept


class CpuLibrary:
    """A built file; `entry` takes pointers, then int64 numbers, then a stream."""

    def __init__(self, kernels: Path, wave_size: int, defines: str = "") -> None:
        toolchain = HipCpuToolchain(BuildCache(default_cache_root()))
        built = toolchain.build(source(kernels, defines), Target("cpu", wave_size))
        assert isinstance(built, Built), built.log
        assert built.log == ""
        ctypes.CDLL(str(toolchain.runtime), ctypes.RTLD_GLOBAL)
        self._entry = ctypes.CDLL(str(built.library)).entry

    def entry(self, arrays: tuple[Array, ...], *numbers: int) -> None:
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        assert self._entry(*pointers, *map(ctypes.c_int64, numbers), ctypes.c_void_p(None)) == 0
