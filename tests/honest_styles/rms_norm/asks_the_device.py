"""Host code asks the device, and is typed: a dataclass under postponed annotations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@dataclass(frozen=True)
class Shape:
    rows: int
    columns: int

    @property
    def block(self) -> int:
        return triton.next_power_of_2(self.columns)


@triton.jit
def rows_kernel(x_ptr, weight_ptr, y_ptr, rows, columns, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row.to(tl.int64) * columns + at, mask=inside, other=0.0).to(tl.float32)
        y = x / tl.sqrt(tl.sum(x * x, axis=0) / columns + eps) * weight
        tl.store(y_ptr + row.to(tl.int64) * columns + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    assert x.is_cuda and weight.is_cuda and y.is_cuda
    shape = Shape(*x.shape)
    processors = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    assert processors == torch.cuda.get_device_properties(x.device).multi_processor_count
    with torch.cuda.device(x.device):
        rows_kernel[(min(shape.rows, processors),)](
            x, weight, y, shape.rows, shape.columns, eps, BLOCK=shape.block
        )
