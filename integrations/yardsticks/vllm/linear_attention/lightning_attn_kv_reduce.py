"""vLLM's states before lightning attention's chunks."""

from vllm.model_executor.layers.lightning_attn import _fwd_kv_reduce


def lightning_attn_kv_reduce(slopes, kv, state, seq_len, chunk_size):
    batch, heads, chunks, dim, value_dim = kv.shape
    _fwd_kv_reduce[(batch * heads, 1)](
        slopes,
        kv,
        state,
        batch,
        heads,
        seq_len,
        dim,
        value_dim,
        BLOCK=chunk_size,
        NUM_BLOCK=chunks,
        D_FBLOCK=dim,
        E_FBLOCK=value_dim,
    )
