"""vLLM's write into a paged cache, with the launch parameters of its wrapper on recent NVIDIA GPUs and on AMD's."""

import torch
import triton
from vllm.v1.attention.ops.triton_reshape_and_cache_flash import reshape_and_cache_kernel_flash


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping):
    _, heads, dim = key.shape
    tile = min(2048, triton.next_power_of_2(heads * dim))
    warps, stages = (16, 10) if torch.version.hip is None else (8, 4)
    reshape_and_cache_kernel_flash[(slot_mapping.shape[0], triton.cdiv(heads * dim, tile))](
        key,
        value,
        key_cache,
        value_cache,
        slot_mapping,
        None,
        None,
        key.stride(0),
        value.stride(0),
        key_cache.stride(0),
        key_cache.stride(2),
        0,
        0,
        key_cache.stride(1),
        num_heads=heads,
        head_size=dim,
        block_size=key_cache.shape[1],
        x=1,
        USE_HEAD_MAJOR_LAYOUT=False,
        INTERLEAVED_V_PACK_FACTOR=0,
        FP8_KV_CACHE=False,
        TILE_SIZE=tile,
        num_warps=warps,
        num_stages=stages,
    )
