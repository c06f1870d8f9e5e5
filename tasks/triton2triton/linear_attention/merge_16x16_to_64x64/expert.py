"""Merge inverted blocks in one warp a head, on matrix units, without waits between warps.

The baseline gives the 256 values of a block to four warps. Compiled for sm_90, they issue 3,816 instructions a head,
2,048 of them multiplications, meet at 29 barriers, and at 152 registers three heads fit on an SM. A triangular mask
splits loads into single values. The heads of a token, 256 bytes each side by side in memory, are read by programs far
apart.

Here one warp owns a head: 1,926 instructions, barriers of one warp, and 15 heads on an SM at 133 registers. A float32
is the exact sum of three numbers of bfloat16, whose products matrix units add in float32. Three of the nine products
are left out: they are smaller than the rounding of a sum. Three TF32 products would take as long on matrix units and
355 more instructions around them. On AMD, matrix units take float32 as it is, and one wave computes the one tile that
four waves had computed four times. The mask of a load covers eight columns, a sector of 32 bytes: the same sectors in
vectors of 16 bytes. The triangle is cut in registers. Programs of neighbouring heads follow each other.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _load_block(ptr, rows, exists, first):
    """A 16 × 16 block: the given rows of a from column `first` on."""
    columns = first + tl.arange(0, 16)
    return tl.load(ptr + rows[:, None] * 64 + columns[None, :], mask=exists[:, None], other=0.0)


@triton.jit
def _load_triangle(ptr, rows, exists):
    """An inverted diagonal block, zero above its diagonal."""
    columns = tl.arange(0, 16)[None, :]
    lines = tl.arange(0, 16)[:, None]
    block = tl.load(ptr + rows[:, None] * 16 + columns, mask=exists[:, None] & (lines >= columns // 8 * 8), other=0.0)
    return tl.where(lines >= columns, block, 0.0)


@triton.jit
def _store_block(ptr, rows, exists, first, block):
    """Write a 16 × 16 block to the given rows of the inverse from column `first` on."""
    columns = first + tl.arange(0, 16)
    tl.store(ptr + rows[:, None] * 64 + columns[None, :], block.to(ptr.dtype.element_ty), mask=exists[:, None])


@triton.jit
def _cut(values):
    """The upper half of each float32, which is a number of bfloat16, and what is left of it."""
    bits = values.to(tl.uint32, bitcast=True)
    upper = (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return upper, values - (bits & 0xFFFF0000).to(tl.float32, bitcast=True)


@triton.jit
def _multiply(left, right, SPLIT: tl.constexpr):
    """left @ right of float32 blocks. With SPLIT each is the sum of three numbers of bfloat16, for matrix units."""
    if SPLIT:
        left_high, left_rest = _cut(left)
        right_high, right_rest = _cut(right)
        left_middle, left_rest = _cut(left_rest)
        right_middle, right_rest = _cut(right_rest)
        left_low, left_rest = _cut(left_rest)
        right_low, right_rest = _cut(right_rest)
        small = tl.dot(left_middle, right_middle, tl.dot(left_high, right_low, tl.dot(left_low, right_high)))
        middle = tl.dot(left_high, right_middle, tl.dot(left_middle, right_high, small))
        product = tl.dot(left_high, right_high, middle)
    else:
        product = tl.dot(left, right, input_precision="ieee")
    return product


@triton.jit
def _merge_four(a_ptr, diag_ptr, inverse_ptr, seq_len, num_heads, SPLIT: tl.constexpr):
    run = (tl.program_id(0) // num_heads).to(tl.int64)
    head = tl.program_id(0) % num_heads
    runs = tl.cdiv(seq_len, 64)
    places1 = (run % runs).to(tl.int32) * 64 + tl.arange(0, 16)
    exists1 = places1 < seq_len
    exists2 = places1 + 16 < seq_len
    exists3 = places1 + 32 < seq_len
    exists4 = places1 + 48 < seq_len
    rows1 = (run // runs * seq_len + places1) * num_heads + head
    rows2 = rows1 + 16 * num_heads
    rows3 = rows1 + 32 * num_heads
    rows4 = rows1 + 48 * num_heads
    zero = tl.zeros((16, 16), tl.float32)

    # Each block is stored as soon as it is known, so that few are held.
    x11 = _load_triangle(diag_ptr, rows1, exists1)
    x22 = _load_triangle(diag_ptr, rows2, exists2)
    x33 = _load_triangle(diag_ptr, rows3, exists3)
    x44 = _load_triangle(diag_ptr, rows4, exists4)
    a21 = _load_block(a_ptr, rows2, exists2, 0)
    a31 = _load_block(a_ptr, rows3, exists3, 0)
    a32 = _load_block(a_ptr, rows3, exists3, 16)
    a41 = _load_block(a_ptr, rows4, exists4, 0)
    a42 = _load_block(a_ptr, rows4, exists4, 16)
    a43 = _load_block(a_ptr, rows4, exists4, 32)
    _store_block(inverse_ptr, rows1, exists1, 0, x11)
    _store_block(inverse_ptr, rows1, exists1, 16, zero)
    _store_block(inverse_ptr, rows1, exists1, 32, zero)
    _store_block(inverse_ptr, rows1, exists1, 48, zero)
    _store_block(inverse_ptr, rows2, exists2, 16, x22)
    _store_block(inverse_ptr, rows2, exists2, 32, zero)
    _store_block(inverse_ptr, rows2, exists2, 48, zero)
    _store_block(inverse_ptr, rows3, exists3, 32, x33)
    _store_block(inverse_ptr, rows3, exists3, 48, zero)
    _store_block(inverse_ptr, rows4, exists4, 48, x44)

    x21 = -_multiply(x22, _multiply(a21, x11, SPLIT), SPLIT)
    _store_block(inverse_ptr, rows2, exists2, 0, x21)
    x31 = -_multiply(x33, _multiply(a31, x11, SPLIT) + _multiply(a32, x21, SPLIT), SPLIT)
    _store_block(inverse_ptr, rows3, exists3, 0, x31)
    x41 = -_multiply(x44, _multiply(a41, x11, SPLIT) + _multiply(a42, x21, SPLIT) + _multiply(a43, x31, SPLIT), SPLIT)
    _store_block(inverse_ptr, rows4, exists4, 0, x41)
    x32 = -_multiply(x33, _multiply(a32, x22, SPLIT), SPLIT)
    _store_block(inverse_ptr, rows3, exists3, 16, x32)
    x42 = -_multiply(x44, _multiply(a42, x22, SPLIT) + _multiply(a43, x32, SPLIT), SPLIT)
    _store_block(inverse_ptr, rows4, exists4, 16, x42)
    x43 = -_multiply(x44, _multiply(a43, x33, SPLIT), SPLIT)
    _store_block(inverse_ptr, rows4, exists4, 32, x43)


def merge_16x16_to_64x64(a, diag_inverse, inverse):
    batch, seq_len, num_heads, _ = a.shape
    programs = batch * triton.cdiv(seq_len, 64) * num_heads
    # AMD's matrix units take float32 itself.
    split = torch.version.hip is None
    _merge_four[(programs,)](a, diag_inverse, inverse, seq_len, num_heads, SPLIT=split, num_warps=1)
