"""vLLM's decoding step of linear attention. It leaves rows of padding as they are, which are cleared first."""

from vllm.model_executor.layers.lightning_attn import _linear_attn_decode_kernel


def linear_attn_decode(query, key, value, slopes, idx_mapping, kv_cache, out):
    requests, heads, dim = query.shape
    out.zero_()
    _linear_attn_decode_kernel[(requests, heads, dim // 32)](
        query,
        key,
        value,
        kv_cache,
        slopes,
        idx_mapping,
        out,
        dim,
        query.stride(0),
        query.stride(1),
        *kv_cache.stride(),
        pad_slot_id=-1,
        BLOCK_SIZE=32,
    )
