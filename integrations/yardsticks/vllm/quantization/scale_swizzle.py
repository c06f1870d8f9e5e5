"""vLLM's rearrangement of scales. It knows one matrix, so a batch takes a launch for each."""

import triton
from vllm.model_executor.layers.quantization.qutlass_utils import triton_scale_swizzle


def scale_swizzle(scales, out):
    batch, rows, columns = scales.shape
    grid = (triton.cdiv(rows, 128), triton.cdiv(columns, 4))
    for number in range(batch):
        triton_scale_swizzle[grid](
            scales[number], rows, columns, out[number], scales.stride(1), 512 * grid[1], BLOCK_ROWS=128, BLOCK_COLS=4
        )
