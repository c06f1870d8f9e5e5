"""Launches of Triton kernels: arguments by signature, tensors as memory. The kernel is HIP with Triton's signature."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from arena.platforms.cpu.amd_isa.triton_host import TritonHost
from arena.platforms.rocm.amd_code_object import bundled
from tests.platforms.test_amd_isa_launch import build, objdump

METADATA = SimpleNamespace(num_warps=2, warp_size=64, shared=0, global_scratch_size=0)
# Triton's kernels end with two pointers to scratch memory.
KERNEL = """
    extern "C" __global__ void add(const float* x, float* y, int n, float by, long long far, void*, void*) {
        const int i = blockIdx.y * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i] + by + far;
    }
    void launch() { add<<<1, 1>>>(nullptr, nullptr, 0, 0, 0, nullptr, nullptr); }
"""


def host() -> tuple[TritonHost, int, DeviceMemory]:
    """A host with the kernel above loaded."""
    memory = DeviceMemory()
    found = TritonHost("gfx942", memory, objdump())
    (binary,) = bundled(build(KERNEL).read_bytes(), "gfx942")
    return found, found.load("add", binary), memory


def launcher(triton: TritonHost, **kinds: Any) -> Any:
    return triton.launcher(SimpleNamespace(signature=kinds), METADATA)


SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "by": "fp32", "B": "constexpr", "far": "i64"}


def test_arguments_follow_the_signature_and_tensors_are_memory() -> None:
    triton, handle, memory = host()
    x, y = torch.arange(500, dtype=torch.float32), torch.zeros(500)
    run = launcher(triton, **SIGNATURE)
    run(2, 2, 1, 0, handle, None, None, None, None, x, y, 499, 0.5, 128, 1 << 20)
    assert torch.equal(y[:499], x[:499] + 0.5 + (1 << 20))
    assert y[499] == 0
    assert memory.holds(x.data_ptr())
    (launch,) = triton.launches
    assert (launch.grid, launch.block) == ((2, 2, 1), (128, 1, 1))
    run(0, 1, 1, 0, handle, None, None, None, None, x, y, 499, 0.5, 128, 0)  # an empty grid runs nothing
    assert len(triton.launches) == 1


def test_a_tensor_s_end_is_a_bound() -> None:
    triton, handle, _ = host()
    x, y = torch.zeros(100), torch.zeros(100)
    with pytest.raises(MachineFault, match="past the end"):
        launcher(triton, **SIGNATURE)(1, 1, 1, 0, handle, None, None, None, None, x, y, 128, 0.5, 128, 0)


def test_tuples_and_missing_tensors() -> None:
    triton, handle, _ = host()
    x, y = torch.ones(8), torch.zeros(8)
    kinds = {"pair": ("*fp32", "*fp32"), "rest": ("i32", "constexpr", "fp32"), "far": "i64"}
    launcher(triton, **kinds)(1, 1, 1, 0, handle, None, None, None, None, (x, y), (8, "unused", 2.0), 0)
    assert torch.equal(y, x + 2)
    with pytest.raises(MachineFault, match=r"scalar load|lanes accessed"):
        launcher(triton, **kinds)(1, 1, 1, 0, handle, None, None, None, None, (None, y), (8, "unused", 2.0), 0)


@pytest.mark.parametrize(("kind", "value"), [("fp8", 1), ("i32", 1)])
def test_signatures_that_do_not_fit_are_not_checked(kind: str, value: int) -> None:
    triton, handle, _ = host()
    with pytest.raises(NotModelled):
        launcher(triton, x=kind)(1, 1, 1, 0, handle, None, None, None, None, value)


def test_global_scratch_is_not_modelled() -> None:
    triton, _, _ = host()
    with pytest.raises(NotModelled, match="global scratch"):
        triton.launcher(SimpleNamespace(signature={}), SimpleNamespace(global_scratch_size=64))
