"""AWQ dequantization: a program per row and block of columns; every column reads the word that it lies in."""

import triton
import triton.language as tl


@triton.jit
def dequantize_row(qweight_ptr, scales_ptr, qzeros_ptr, out_ptr, N, group_size, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < N
    words = columns // 8
    # Of the eight columns in a word, the even ones lie in its lower half, the odd ones in its upper half.
    shifts = columns % 8 // 2 * 4 + columns % 2 * 16
    group = row // group_size
    codes = tl.load(qweight_ptr + row * (N // 8) + words, mask=inside, other=0)
    zeros = tl.load(qzeros_ptr + group * (N // 8) + words, mask=inside, other=0)
    scales = tl.load(scales_ptr + group * N + columns, mask=inside, other=0.0)
    value = (((codes >> shifts) & 15) - ((zeros >> shifts) & 15)) * scales.to(tl.float32)
    tl.store(out_ptr + row * N + columns, value.to(out_ptr.dtype.element_ty), mask=inside)


def awq_dequantize(qweight, scales, qzeros, out):
    K, N = out.shape
    group_size = K // scales.shape[0]
    dequantize_row[(K, triton.cdiv(N, 256))](qweight, scales, qzeros, out, N, group_size, BLOCK=256)
