"""AWQ dequantization: a program for up to 16 rows of one group and 128 words of each, which are 1024 columns."""

import triton
import triton.language as tl


@triton.jit
def dequantize_rows(
    qweight_ptr, scales_ptr, qzeros_ptr, out_ptr, words, group_size, ROWS: tl.constexpr, WORDS: tl.constexpr
):
    parts = tl.cdiv(group_size, ROWS)
    group = (tl.program_id(0) // parts).to(tl.int64)
    first = tl.program_id(0) % parts * ROWS
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    inside = word < words
    columns = word[:, None] * 8 + tl.arange(0, 8)[None, :]
    # Of the eight columns in a word, the even ones lie in its lower half, the odd ones in its upper half.
    shifts = columns % 8 // 2 * 4 + columns % 2 * 16
    zeros = tl.load(qzeros_ptr + group * words + word, mask=inside, other=0)
    zeros = (zeros[:, None] >> shifts) & 15
    scales = tl.load(scales_ptr + group * words * 8 + columns, mask=inside[:, None], other=0.0).to(tl.float32)
    for row in range(first, tl.minimum(first + ROWS, group_size)):
        start = (group * group_size + row) * words
        codes = tl.load(qweight_ptr + start + word, mask=inside, other=0)
        value = (((codes[:, None] >> shifts) & 15) - zeros) * scales
        tl.store(out_ptr + start * 8 + columns, value.to(out_ptr.dtype.element_ty), mask=inside[:, None])


def awq_dequantize(qweight, scales, qzeros, out):
    K, words = qweight.shape
    groups = scales.shape[0]
    group_size = K // groups
    grid = (groups * triton.cdiv(group_size, 16), triton.cdiv(words, 128))
    dequantize_rows[grid](qweight, scales, qzeros, out, words, group_size, ROWS=16, WORDS=128)
