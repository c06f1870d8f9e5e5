"""The HIP header set for CUDA, generated from the CUDA↔HIP name table that PyTorch ships."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from arena.errors import InfrastructureError

_TABLE_FILE = Path("utils") / "hipify" / "cuda_to_hip_mappings.py"

# What HIP has under another name than the table says, or under more than one.
_ALIASES = {
    "hipErrorOutOfMemory": "cudaErrorMemoryAllocation",
    "hipError_t": "cudaError_t",
    "hipDeviceAttributeWarpSize": "cudaDevAttrWarpSize",
    "hipDeviceAttributeMaxSharedMemoryPerBlock": "cudaDevAttrMaxSharedMemoryPerBlock",
    "hipHostMalloc": "cudaHostAlloc",
    "hipLaunchCooperativeKernel": "cudaLaunchCooperativeKernel",
}

_RUNTIME = r"""// HIP on CUDA, generated. Device language is CUDA's own; names of the runtime API are renamed below.
#pragma once
#include <cuda_runtime.h>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cstdint>
#include <cstdio>
#define __HIPCC__ 1
#define __HIP__ 1
#define __HIP_PLATFORM_NVIDIA__ 1
#include "hip_names.h"
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(symbol) symbol
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
    do { kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__); } while (0)
// HIP's forms without a mask: all 32 lanes of the warp.
#define __any(...) __any_sync(0xffffffffu, __VA_ARGS__)
#define __all(...) __all_sync(0xffffffffu, __VA_ARGS__)
#define __ballot(...) static_cast<unsigned long long>(__ballot_sync(0xffffffffu, __VA_ARGS__))
#define __match_any(...) static_cast<unsigned long long>(__match_any_sync(0xffffffffu, __VA_ARGS__))
#define __builtin_nontemporal_load(address) __ldcs(address)
#define __builtin_nontemporal_store(value, address) __stcs((address), (value))
#define amd_mixed_dot(a, b, c, saturate) __dp4a(a, b, c)
// Functions, not macros: cuda_fp16.h declares overloads of these names.
template <class T> __device__ __forceinline__ T __shfl(T value, int lane, int width = 32) {
    return __shfl_sync(0xffffffffu, value, lane, width);
}
template <class T> __device__ __forceinline__ T __shfl_up(T value, unsigned delta, int width = 32) {
    return __shfl_up_sync(0xffffffffu, value, delta, width);
}
template <class T> __device__ __forceinline__ T __shfl_down(T value, unsigned delta, int width = 32) {
    return __shfl_down_sync(0xffffffffu, value, delta, width);
}
template <class T> __device__ __forceinline__ T __shfl_xor(T value, int mask, int width = 32) {
    return __shfl_xor_sync(0xffffffffu, value, mask, width);
}
__device__ __forceinline__ unsigned __lane_id() {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
__device__ __forceinline__ long long wall_clock64() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return static_cast<long long>(ns / 10);  // 100 MHz, as on AMD
}
template <class T, class V> __device__ __forceinline__ T unsafeAtomicAdd(T* address, V value) {
    return atomicAdd(address, static_cast<T>(value));
}
template <class T, class V> __device__ __forceinline__ T safeAtomicAdd(T* address, V value) {
    return atomicAdd(address, static_cast<T>(value));
}
"""


def _without_votes(include: str) -> str:
    """Include a header of CUDA's C++ library, which has names such as `__any` of its own, without our macros."""
    votes = ("__any", "__all", "__ballot", "__match_any")
    hide = "".join(f'#pragma push_macro("{name}")\n#undef {name}\n' for name in votes)
    show = "".join(f'#pragma pop_macro("{name}")\n' for name in votes)
    return f'#pragma once\n#include "hip_runtime.h"\n{hide}{include}\n{show}'


_HEADERS = {
    "hip_runtime.h": _RUNTIME,
    "hip_runtime_api.h": '#pragma once\n#include "hip_runtime.h"\n',
    "hip_vector_types.h": "#pragma once\n#include <vector_types.h>\n#include <vector_functions.h>\n",
    "hip_fp16.h": '#pragma once\n#include "hip_runtime.h"\n#include <cuda_fp16.h>\n',
    "hip_bf16.h": """#pragma once
#include "hip_runtime.h"
#include <cuda_bf16.h>
#define __hip_bfloat16 __nv_bfloat16
#define __hip_bfloat162 __nv_bfloat162
#define __hip_bfloat16_raw __nv_bfloat16_raw
#define __hip_bfloat162_raw __nv_bfloat162_raw
""",
    "hip_bfloat16.h": '#pragma once\n#include "hip_bf16.h"\ntypedef __nv_bfloat16 hip_bfloat16;\n',
    "hip_cooperative_groups.h": _without_votes("#include <cooperative_groups.h>"),
}
_FP8_NAMES = (
    *("fp8_e4m3", "fp8x2_e4m3", "fp8x4_e4m3", "fp8_e5m2", "fp8x2_e5m2", "fp8x4_e5m2"),
    *("fp8_storage_t", "fp8x2_storage_t", "fp8x4_storage_t", "fp8_interpretation_t", "saturation_t"),
    *("cvt_float_to_fp8", "cvt_float2_to_fp8x2", "cvt_double_to_fp8", "cvt_double2_to_fp8x2"),
    *("cvt_halfraw_to_fp8", "cvt_halfraw2_to_fp8x2", "cvt_bfloat16raw_to_fp8", "cvt_bfloat16raw2_to_fp8x2"),
    *("cvt_fp8_to_halfraw", "cvt_fp8x2_to_halfraw2"),
)


def header_set(names: Mapping[str, str]) -> dict[str, str]:
    """Return the headers by path below an include folder, for a table from HIP name to CUDA name."""
    merged = {**names, **_ALIASES}
    lines = [f"#define {hip} {cuda}" for hip, cuda in sorted(merged.items())]
    fp8 = [f"#define __hip_{name} __nv_{name}" for name in _FP8_NAMES]
    fp8 += [f"#define __HIP_{name} __NV_{name}" for name in ("SATFINITE", "NOSAT", "E4M3", "E5M2")]
    headers = {
        **_HEADERS,
        "hip_names.h": "\n".join(["#pragma once", *lines, ""]),
        "hip_fp8.h": "\n".join(
            ["#pragma once", '#include "hip_fp16.h"', '#include "hip_bf16.h"', "#include <cuda_fp8.h>", *fp8, ""]
        ),
    }
    return {f"hip/{name}": text for name, text in headers.items()}


@cache
def runtime_names() -> dict[str, str]:
    """Return HIP name → CUDA name for the runtime API, as PyTorch's table has it."""
    return dict(_inverted(_table()))


def _inverted(table: ModuleType) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for mapping in (table.CUDA_TYPE_NAME_MAP, table.CUDA_IDENTIFIER_MAP):
        for cuda, entry in mapping.items():
            hip = entry if isinstance(entry, str) else entry[0]
            # Both spellings of an API name (`cudaMallocHost`, `cudaHostAlloc`) map to one: the first stands.
            if hip not in seen and re.fullmatch(r"cuda\w+", cuda) and re.fullmatch(r"hip\w+", hip):
                seen.add(hip)
                yield hip, cuda


def _table() -> ModuleType:
    """Load the one file that holds the table: importing torch would take seconds."""
    torch = importlib.util.find_spec("torch")
    folders = list(torch.submodule_search_locations or ()) if torch is not None else []
    for path in (Path(folder) / _TABLE_FILE for folder in folders):
        spec = importlib.util.spec_from_file_location("arena_cuda_to_hip_mappings", path)
        if path.is_file() and spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise InfrastructureError("the CUDA↔HIP name table is part of PyTorch, which is not installed")
