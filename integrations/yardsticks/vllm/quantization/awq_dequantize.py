"""vLLM's unpacking of AWQ weights, with the launch parameters of its wrapper."""

import triton
from vllm.model_executor.layers.quantization.awq_triton import awq_dequantize_kernel


def awq_dequantize(qweight, scales, qzeros, out):
    rows, words = qweight.shape
    awq_dequantize_kernel[(triton.cdiv(words, 32), triton.cdiv(rows, 32))](
        qweight,
        scales,
        qzeros,
        rows // scales.shape[0],
        out,
        words,
        rows,
        BLOCK_SIZE_X=32,
        BLOCK_SIZE_Y=32,
    )
