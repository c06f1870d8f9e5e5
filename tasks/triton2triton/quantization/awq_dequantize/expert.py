"""AWQ dequantization of tiles: a word is read once and gives its eight columns in registers."""

import triton
import triton.language as tl


@triton.jit
def _dequantize_tile(
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    out_ptr,
    K,
    words,
    group_size,
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
    ONE_GROUP: tl.constexpr,
):
    """With ONE_GROUP, all rows of the tile have the same scales and zeros, which are then read once."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    column = tl.arange(0, 8)
    shifts = (column // 2 * 4 + column % 2 * 16)[None, None, :]
    word_mask = (word < words)[None, :]
    inside = (rows < K)[:, None] & word_mask
    offsets = rows.to(tl.int64)[:, None] * words + word[None, :]
    codes = tl.load(qweight_ptr + offsets, mask=inside, other=0)
    if ONE_GROUP:
        group = tl.program_id(0).to(tl.int64) * ROWS // group_size
        group_offsets = (group * words + word)[None, :]
        group_mask = word_mask
    else:
        group_offsets = (rows // group_size).to(tl.int64)[:, None] * words + word[None, :]
        group_mask = inside
    zeros = tl.load(qzeros_ptr + group_offsets, mask=group_mask, other=0)
    scale_ptrs = scales_ptr + group_offsets[:, :, None] * 8 + column[None, None, :]
    scales = tl.load(scale_ptrs, mask=group_mask[:, :, None], other=0.0).to(tl.float32)
    value = (((codes[:, :, None] >> shifts) & 15) - ((zeros[:, :, None] >> shifts) & 15)) * scales
    out_ptrs = out_ptr + offsets[:, :, None] * 8 + column[None, None, :]
    tl.store(out_ptrs, value.to(out_ptr.dtype.element_ty), mask=inside[:, :, None])


def awq_dequantize(qweight, scales, qzeros, out):
    K, words = qweight.shape
    group_size = K // scales.shape[0]
    rows, wide = 16, min(64, triton.next_power_of_2(words))
    _dequantize_tile[(triton.cdiv(K, rows), triton.cdiv(words, wide))](
        qweight,
        scales,
        qzeros,
        out,
        K,
        words,
        group_size,
        ROWS=rows,
        WORDS=wide,
        ONE_GROUP=group_size % rows == 0,
        num_warps=8,
    )
