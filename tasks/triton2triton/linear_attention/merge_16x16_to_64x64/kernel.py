"""Merge four inverted 16 × 16 blocks into the inverse of 64 × 64: one program per run of 64 tokens and head.

It goes down the blocks below the diagonal; each takes the blocks of its column that are already known.
"""

import triton
import triton.language as tl


@triton.jit
def load_block(ptr, rows, exists, first):
    """A 16 × 16 block: the given rows of a from column `first` on."""
    columns = first + tl.arange(0, 16)
    return tl.load(ptr + rows[:, None] * 64 + columns[None, :], mask=exists[:, None], other=0.0)


@triton.jit
def load_triangle(ptr, rows, exists):
    """An inverted diagonal block, zero above its diagonal."""
    columns = tl.arange(0, 16)
    mask = exists[:, None] & (tl.arange(0, 16)[:, None] >= columns[None, :])
    return tl.load(ptr + rows[:, None] * 16 + columns[None, :], mask=mask, other=0.0)


@triton.jit
def store_block(ptr, rows, exists, first, block):
    """Write a 16 × 16 block to the given rows of the inverse from column `first` on."""
    columns = first + tl.arange(0, 16)
    tl.store(ptr + rows[:, None] * 64 + columns[None, :], block.to(ptr.dtype.element_ty), mask=exists[:, None])


@triton.jit
def multiply(left, right):
    return tl.dot(left, right, input_precision="ieee")


@triton.jit
def merge_four(a_ptr, diag_ptr, inverse_ptr, seq_len, num_heads):
    run = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    runs = tl.cdiv(seq_len, 64)
    places1 = run % runs * 64 + tl.arange(0, 16)
    places2 = places1 + 16
    places3 = places1 + 32
    places4 = places1 + 48
    exists1 = places1 < seq_len
    exists2 = places2 < seq_len
    exists3 = places3 < seq_len
    exists4 = places4 < seq_len
    base = run // runs * seq_len
    rows1 = (base + places1) * num_heads + head
    rows2 = (base + places2) * num_heads + head
    rows3 = (base + places3) * num_heads + head
    rows4 = (base + places4) * num_heads + head

    x11 = load_triangle(diag_ptr, rows1, exists1)
    x22 = load_triangle(diag_ptr, rows2, exists2)
    x33 = load_triangle(diag_ptr, rows3, exists3)
    x44 = load_triangle(diag_ptr, rows4, exists4)
    a21 = load_block(a_ptr, rows2, exists2, 0)
    x21 = -multiply(x22, multiply(a21, x11))
    a31 = load_block(a_ptr, rows3, exists3, 0)
    a32 = load_block(a_ptr, rows3, exists3, 16)
    x31 = -multiply(x33, multiply(a31, x11) + multiply(a32, x21))
    x32 = -multiply(x33, multiply(a32, x22))
    a41 = load_block(a_ptr, rows4, exists4, 0)
    a42 = load_block(a_ptr, rows4, exists4, 16)
    a43 = load_block(a_ptr, rows4, exists4, 32)
    x41 = -multiply(x44, multiply(a41, x11) + multiply(a42, x21) + multiply(a43, x31))
    x42 = -multiply(x44, multiply(a42, x22) + multiply(a43, x32))
    x43 = -multiply(x44, multiply(a43, x33))

    zero = tl.zeros((16, 16), tl.float32)
    store_block(inverse_ptr, rows1, exists1, 0, x11)
    store_block(inverse_ptr, rows1, exists1, 16, zero)
    store_block(inverse_ptr, rows1, exists1, 32, zero)
    store_block(inverse_ptr, rows1, exists1, 48, zero)
    store_block(inverse_ptr, rows2, exists2, 0, x21)
    store_block(inverse_ptr, rows2, exists2, 16, x22)
    store_block(inverse_ptr, rows2, exists2, 32, zero)
    store_block(inverse_ptr, rows2, exists2, 48, zero)
    store_block(inverse_ptr, rows3, exists3, 0, x31)
    store_block(inverse_ptr, rows3, exists3, 16, x32)
    store_block(inverse_ptr, rows3, exists3, 32, x33)
    store_block(inverse_ptr, rows3, exists3, 48, zero)
    store_block(inverse_ptr, rows4, exists4, 0, x41)
    store_block(inverse_ptr, rows4, exists4, 16, x42)
    store_block(inverse_ptr, rows4, exists4, 32, x43)
    store_block(inverse_ptr, rows4, exists4, 48, x44)


def merge_16x16_to_64x64(a, diag_inverse, inverse):
    batch, seq_len, num_heads, _ = a.shape
    merge_four[(batch * triton.cdiv(seq_len, 64), num_heads)](a, diag_inverse, inverse, seq_len, num_heads)
