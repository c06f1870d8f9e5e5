"""Run the host code of a HIP library that clang built for an AMD GPU; each launch executes the machine code.

The library is called as it is. A stand-in runtime (`host_runtime.cpp`) receives its launches, so grid, block, dynamic
LDS and arguments are those that the compiled host code decides. Launches run at once, one after the other.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from arena.errors import InfrastructureError
from arena.platforms.cpu.amd_isa.execute import TOGETHER
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.launch import MOST_THREADS, Launch, LoadedCode, pack_arguments
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from arena.platforms.rocm.amd_code_object import bundled
from arena.platforms.toolchains.base import BuildFailed
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import Recipe, build_cached

_SOURCE = Path(__file__).with_name("host_runtime.cpp")
_LAUNCH_FAILURE = 719
_INVALID_CONFIGURATION = 9
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=default")
_ALIGN = 256
_REGISTERED: dict[Path, tuple[dict[int, str], dict[int, str]]] = {}
"""kernels and variables of each loaded library, by the addresses of their stand-ins on the host"""
_Size3 = ctypes.c_uint32 * 3
_TYPES: dict[str, Any] = {
    "launch": ctypes.CFUNCTYPE(
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.POINTER(_Size3),
        ctypes.POINTER(_Size3),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.c_size_t,
    ),
    "add_function": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
    "add_variable": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
    "variable": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p),
    "allocate": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t),
    "release": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p),
}


class _Callbacks(ctypes.Structure):
    _fields_ = list(_TYPES.items())


def build_runtime(cache: BuildCache) -> Path:
    """Return the stand-in runtime as a library. Raises `InfrastructureError` where there is no C++ compiler."""
    compiler = next((found for name in ("g++", "clang++") if (found := shutil.which(name))), None)
    if compiler is None:
        raise InfrastructureError("no C++ compiler: install the Debian package g++")
    text = _SOURCE.read_text(encoding="utf-8")
    recipe = Recipe({_SOURCE.name: text}, [compiler, *_FLAGS, _SOURCE.name], "libhost_runtime.so")
    built = build_cached(recipe, cache, timeout_s=60.0)
    if isinstance(built, BuildFailed):
        raise InfrastructureError(f"the stand-in HIP runtime does not build:\n{built.reason}")
    return built.library


class HipHost:
    """One HIP library and its code object. One at a time in a process: libraries find the runtime by its symbols."""

    def __init__(self, library: Path, runtime: Path, arch: str, memory: DeviceMemory, objdump: Path) -> None:
        """Load both libraries. Raises `NotModelled` where the library needs more of HIP than the runtime has."""
        self._memory = memory
        codes = bundled(library.read_bytes(), arch)
        if len(codes) != 1:
            raise NotModelled(f"{len(codes)} code objects for {arch} in the library, expected one")
        self._code = LoadedCode(codes[0], arch, memory, objdump)
        # A library registers its names when this process loads it first, and never again.
        self._functions, self._variables = _REGISTERED.setdefault(library, ({}, {}))
        self._allocated: dict[int, Any] = {}
        self._problem: Exception | None = None
        self.launches: list[Launch] = []
        self.deadline = float("inf")
        self.order = TOGETHER
        held = {name: kind(getattr(self, f"_{name}")) for name, kind in _TYPES.items()}
        self._callbacks = _Callbacks(**held)
        self._runtime = ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)
        self._runtime.arena_set_callbacks(ctypes.byref(self._callbacks))
        try:
            self.library = ctypes.CDLL(str(library), mode=os.RTLD_NOW)
        except OSError as problem:
            raise NotModelled(f"HIP's runtime: {problem}") from None

    def call(self, name: str, arguments: list[Any], timeout_s: float = float("inf")) -> int:
        """Call a host function with ctypes values; return its code. Raises what a launch raised."""
        self.deadline = time.monotonic() + timeout_s
        function = getattr(self.library, name)
        function.restype = ctypes.c_int
        code = int(function(*arguments))
        if self._problem is not None:
            raise self._problem
        return code

    def workspace_bytes(self, name: str, axes: list[Any]) -> int | None:
        """Return what `NAME_workspace` says of these axes, or None where the library has no such function."""
        function = getattr(self.library, f"{name}_workspace", None)
        if function is None:
            return None
        function.restype = ctypes.c_size_t
        return int(function(*axes))

    def mnemonics(self) -> dict[str, int]:
        """Return how often each mnemonic stands in the code object."""
        return dict(self._code.mnemonics())

    def allocate(self, num_bytes: int) -> int:
        """Return the address of new device memory."""
        room = np.full(num_bytes + _ALIGN, 0xFF, np.uint8)
        address = int(room.ctypes.data + -room.ctypes.data % _ALIGN)
        self._memory.add(address, num_bytes, "an allocation", room)
        self._allocated[address] = room
        return address

    def _launch(self, function: int, grid: Any, block: Any, arguments: Any, dynamic_lds: int) -> int:
        if self._problem is not None:
            return _LAUNCH_FAILURE
        sizes = (*grid.contents, *block.contents)
        if 0 in sizes or math.prod(block.contents) > MOST_THREADS:
            return _INVALID_CONFIGURATION
        try:
            name = self._functions[function]
            explicit = [p for p in self._code.code.kernels[name].parameters if not p.hidden]
            values = [ctypes.string_at(arguments[n], p.size) for n, p in enumerate(explicit)]
            packed = pack_arguments(self._code.code.kernels[name], values)
            launch = Launch(name, tuple(grid.contents), tuple(block.contents), dynamic_lds, packed)
            self.launches.append(launch)
            self._code.run(launch, self.deadline, self.order)
        except Exception as problem:  # an exception cannot pass through C
            self._problem = problem
            return _LAUNCH_FAILURE
        return 0

    def _add_function(self, module: int, function: int, name: bytes) -> None:
        self._functions[function] = name.decode()

    def _add_variable(self, module: int, variable: int, name: bytes, num_bytes: int) -> None:
        self._variables[variable] = name.decode()

    def _variable(self, variable: int) -> int | None:
        name = self._variables.get(variable)
        return None if name is None else self._code.variable(name)[0]

    def _allocate(self, num_bytes: int) -> int | None:
        return self.allocate(num_bytes) if num_bytes else None

    def _release(self, pointer: int | None) -> int:
        if pointer and self._allocated.pop(pointer, None) is None:
            return 1
        if pointer:
            self._memory.remove(pointer)
        return 0
