"""vLLM's unified attention without split keys, as it serves prefills."""

from vllm.v1.attention.ops.triton_unified_attention import unified_attention


class KVQuantMode:
    """Values of the engine's enumeration that it compares with."""

    NONE = 0
    INT8_PER_TOKEN_HEAD = 2
    FP8_PER_TOKEN_HEAD = 3
    INT4_PER_TOKEN_HEAD = 4


def unified_attention_int4(**_):
    """Never called: caches of the task are not quantized."""
    raise NotImplementedError


def unified_attention_2d(
    query, key_cache, value_cache, block_table, cu_seqlens, seq_lens, sm_scale, softcap, sliding_window, out
):
    unified_attention(
        query,
        key_cache,
        value_cache,
        out,
        cu_seqlens,
        query.shape[0],
        seq_lens,
        block_table.shape[1] * key_cache.shape[1],
        sm_scale,
        True,
        (sliding_window - 1, 0),
        block_table,
        softcap,
        None,
        None,
        None,
        kv_quant_mode=0,
    )
