"""Inverse of 16 × 16 unit lower triangular blocks by forward substitution: one program per block, one row a step."""

import triton
import triton.language as tl


@triton.jit
def invert_block(a_ptr, inverse_ptr, seq_len, num_heads, CHUNK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    blocks = tl.cdiv(seq_len, 16)
    first = block % blocks * 16
    rows = tl.arange(0, 16)
    columns = tl.arange(0, 16)
    row_base = (block // blocks * seq_len + first) * num_heads + head

    inverse = tl.where(rows[:, None] == columns[None, :], 1.0, 0.0)
    for step in range(1, 16):
        # Row `step` of I + L times the inverse is a row of the identity: solved for the inverse's own row.
        source = a_ptr + (row_base + step * num_heads) * CHUNK + first % CHUNK + columns
        lower = tl.load(source, mask=(columns < step) & (first + step < seq_len), other=0.0)
        row = tl.sum(lower[:, None] * inverse, axis=0)
        inverse = tl.where(rows[:, None] == step, inverse - row[None, :], inverse)
    targets = inverse_ptr + (row_base + rows * num_heads)[:, None] * 16 + columns[None, :]
    tl.store(targets, inverse.to(inverse_ptr.dtype.element_ty), mask=(first + rows < seq_len)[:, None])


def solve_tril_16x16(a, inverse):
    batch, seq_len, num_heads, chunk_size = a.shape
    invert_block[(batch * triton.cdiv(seq_len, 16), num_heads)](a, inverse, seq_len, num_heads, CHUNK=chunk_size)
