"""expect: wrong_result. Masked values: what lies above the diagonal is multiplied by 0, and NaN stays.

Merge two inverted 16 × 16 blocks into the inverse of 32 × 32: one program per run of 32 tokens and head.
"""

import triton
import triton.language as tl


@triton.jit
def merge_pair(a_ptr, diag_ptr, inverse_ptr, seq_len, num_heads):
    pair = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    pairs = tl.cdiv(seq_len, 32)
    columns = tl.arange(0, 16)
    upper_rows = pair % pairs * 32 + tl.arange(0, 16)
    lower_rows = upper_rows + 16
    in_upper = (upper_rows < seq_len)[:, None]
    in_lower = (lower_rows < seq_len)[:, None]
    triangle = (tl.arange(0, 16)[:, None] >= columns[None, :]).to(tl.float32)

    base = pair // pairs * seq_len
    upper = ((base + upper_rows) * num_heads + head)[:, None]
    lower = ((base + lower_rows) * num_heads + head)[:, None]
    first = tl.load(diag_ptr + upper * 16 + columns[None, :], mask=in_upper, other=0.0) * triangle
    second = tl.load(diag_ptr + lower * 16 + columns[None, :], mask=in_lower, other=0.0) * triangle
    block = tl.load(a_ptr + lower * 32 + columns[None, :], mask=in_lower, other=0.0)
    product = tl.dot(second, block, input_precision="ieee")
    below = -tl.dot(product, first, input_precision="ieee")

    kind = inverse_ptr.dtype.element_ty
    tl.store(inverse_ptr + upper * 32 + columns[None, :], first.to(kind), mask=in_upper)
    tl.store(inverse_ptr + upper * 32 + 16 + columns[None, :], tl.zeros((16, 16), kind), mask=in_upper)
    tl.store(inverse_ptr + lower * 32 + columns[None, :], below.to(kind), mask=in_lower)
    tl.store(inverse_ptr + lower * 32 + 16 + columns[None, :], second.to(kind), mask=in_lower)


def merge_16x16_to_32x32(a, diag_inverse, inverse):
    batch, seq_len, num_heads, _ = a.shape
    merge_pair[(batch * triton.cdiv(seq_len, 32), num_heads)](a, diag_inverse, inverse, seq_len, num_heads, num_warps=1)
