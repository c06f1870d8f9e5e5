"""Descriptors made by host code where alignment allows them, with a plain kernel for the rest."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def copy_by_descriptor(x_desc, out_ptr, top, left, padding, height, width, rows, columns, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.program_id(0) * R, tl.program_id(1) * C
    tile = x_desc.load([i + top, j + left])
    y = i + tl.arange(0, R)[:, None]
    x = j + tl.arange(0, C)[None, :]
    inside = (y + top < height) & (x + left < width)
    filler = tl.full([R, C], padding, tl.float32).to(tile.dtype)
    tl.store(out_ptr + y.to(tl.int64) * columns + x, tl.where(inside, tile, filler), mask=(y < rows) & (x < columns))


@triton.jit
def copy_by_pointer(x_ptr, out_ptr, top, left, padding, stride, height, width, rows, columns, R: tl.constexpr, C: tl.constexpr):
    y = (tl.program_id(0) * R + tl.arange(0, R))[:, None].to(tl.int64)
    x = (tl.program_id(1) * C + tl.arange(0, C))[None, :]
    wanted = (y < rows) & (x < columns)
    inside = (y + top >= 0) & (y + top < height) & (x + left >= 0) & (x + left < width)
    tile = tl.load(x_ptr + (y + top) * stride + x + left, mask=wanted & inside, other=0.0)
    filler = tl.full([R, C], padding, tl.float32).to(tile.dtype)
    tl.store(out_ptr + y * columns + x, tl.where(inside, tile, filler), mask=wanted)


def block_copy(x, top, left, padding, out):
    R, C = 16, 32
    grid = (triton.cdiv(out.shape[0], R), triton.cdiv(out.shape[1], C))
    sizes = (*x.shape, *out.shape)
    described = x.data_ptr() % 16 == 0 and x.stride(0) * x.element_size() % 16 == 0 and top >= 0 and left >= 0
    if described:
        desc = TensorDescriptor(x, shape=list(x.shape), strides=list(x.stride()), block_shape=[R, C])
        copy_by_descriptor[grid](desc, out, top, left, padding, *sizes, R=R, C=C)
    else:
        copy_by_pointer[grid](x, out, top, left, padding, x.stride(0), *sizes, R=R, C=C)
