"""AWQ dequantization by strips of one group: a thread keeps scales and zeros of a word's eight columns in registers.

A word is read once, by the thread that stores its columns, eight at a time. Words of the next rows are on the way
meanwhile. A code becomes a float32 by one logical operation, without a shift of its own and without a conversion.
"""

import triton
import triton.language as tl

# The float32 of these bits is 2 ** 23; integers below 2 ** 23 in its lower bits add to it exactly.
MAGIC_BITS = tl.constexpr(0x4B000000)


@triton.jit
def _unpack(words, half, mask):
    """Return 2 ** 23 + code * 16 ** (column // 2) for the eight columns of every word, in float32."""
    return ((words >> half & mask) | MAGIC_BITS).to(tl.float32, bitcast=True)


@triton.jit
def _dequantize_strip(
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    out_ptr,
    words,
    group_size,
    strips,
    STRIP: tl.constexpr,
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Up to STRIP rows of one group, ROWS at a time; strips is the number of such strips of a group."""
    blocks = tl.cdiv(words, WORDS)
    word = tl.program_id(0) % blocks * WORDS + tl.arange(0, WORDS)
    strip = tl.program_id(0) // blocks
    group = (strip // strips).to(tl.int64)
    first = strip % strips * STRIP
    last = tl.minimum(first + STRIP, group_size)
    # Even columns lie in the lower half of a word, odd ones in the upper half.
    column = tl.arange(0, 8)
    half = (column % 2 * 16)[None, :]
    mask = (15 << column // 2 * 4)[None, :]
    real = word < words
    columns = word[:, None] * 8 + column[None, :]
    zeros = _unpack(tl.load(qzeros_ptr + group * words + word, mask=real, other=0)[:, None], half, mask)
    scales = tl.load(scales_ptr + group * words * 8 + columns, mask=real[:, None], other=0.0).to(tl.float32)
    scales *= 1.0 / (1 << column // 2 * 4).to(tl.float32)[None, :]
    qweight_ptr += group * group_size * words
    out_ptr += group * group_size * words * 8
    for start in tl.range(first, last, ROWS, num_stages=3):
        rows = start + tl.arange(0, ROWS)
        # Rows are the second dimension, so that a thread has the same word of all of them.
        inside = real[:, None] & (rows < last)[None, :]
        places = rows[None, :] * words
        codes = tl.load(qweight_ptr + places + word[:, None], mask=inside, other=0)
        codes = _unpack(codes[:, :, None], half[:, None, :], mask[:, None, :])
        value = (codes - zeros[:, None, :]) * scales[:, None, :]
        out_ptrs = out_ptr + places[:, :, None] * 8 + columns[:, None, :]
        tl.store(out_ptrs, value.to(out_ptr.dtype.element_ty), mask=inside[:, :, None])


def awq_dequantize(qweight, scales, qzeros, out):
    K, words = qweight.shape
    groups = scales.shape[0]
    group_size = K // groups
    strip, wide = 32, min(128, triton.next_power_of_2(words))
    strips = triton.cdiv(group_size, strip)
    _dequantize_strip[(triton.cdiv(words, wide) * groups * strips,)](
        qweight,
        scales,
        qzeros,
        out,
        words,
        group_size,
        strips,
        STRIP=strip,
        ROWS=4,
        WORDS=wide,
        num_warps=4,
    )
