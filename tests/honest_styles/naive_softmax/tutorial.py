"""The device is asked as in Triton's tutorial on softmax: its target, its properties, and a grid that fills it."""

import functools
import math

import torch
import triton
import triton.language as tl
from triton.runtime import driver

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def is_hip():
    return triton.runtime.driver.active.get_current_target().backend == "hip"


def is_cdna():
    return is_hip() and triton.runtime.driver.active.get_current_target().arch in ("gfx90a", "gfx942", "gfx950")


@functools.lru_cache(maxsize=None)
def properties():
    return driver.active.utils.get_device_properties(driver.active.get_current_device())


@functools.cache
def warps(block: int) -> int:
    return max(1, min(8, 1 << int(math.log2(max(1, block // 256)))))


@triton.jit
def softmax_kernel(
    output_ptr, input_ptr, input_row_stride, output_row_stride, n_rows, n_cols,
    BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr,
):  # fmt: skip
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        row_start_ptr = input_ptr + row_idx.to(tl.int64) * input_row_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        mask = col_offsets < n_cols
        row = tl.load(row_start_ptr + col_offsets, mask=mask, other=-float("inf")).to(tl.float32)
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        denominator = tl.sum(numerator, axis=0)
        tl.store(output_ptr + row_idx.to(tl.int64) * output_row_stride + col_offsets, numerator / denominator, mask=mask)


def naive_softmax(x, y):
    n_rows, n_cols = x.shape
    block = triton.next_power_of_2(n_cols)
    assert x.device.type == torch.device(DEVICE).type, (x.device, DEVICE)
    num_warps = warps(block)
    num_stages = 4 if properties()["max_shared_mem"] > 200_000 else 2
    size_smem, num_sm = properties()["max_shared_mem"], properties()["multiprocessor_count"]
    occupancy = properties()["max_num_regs"] // (32 * properties()["warpSize"] * num_warps)
    occupancy = max(1, min(occupancy, size_smem // max(block * 4, 1)))
    programs = min(num_sm * occupancy * (2 if is_cdna() else 1), n_rows)
    softmax_kernel[(programs, 1, 1)](
        y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK_SIZE=block, num_stages=num_stages, num_warps=num_warps
    )
