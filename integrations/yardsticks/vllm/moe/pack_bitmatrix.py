"""vLLM's packing of experts into bits, with blocks of 512 rows and 32 choices as its caller has.

Its columns come in groups of one word for 32 choices at a time; it reads choices of 32 or 64 bits.
"""

import triton
from vllm.model_executor.layers.fused_moe.experts.gpt_oss_triton_kernels_moe import pack_bitmatrix as engine_pack


def pack_bitmatrix(topk_ids, words):
    rows, columns = words.shape
    engine_pack[(triton.cdiv(rows, 512),)](words, topk_ids, rows, columns, topk_ids.shape[1], 512, 32)
