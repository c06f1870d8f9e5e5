"""vLLM's states of lightning attention's chunks. It wants heads before tokens, so inputs are copied, as in the engine.

The engine multiplies float32 decays with its input and computes in float32, so 16-bit cases do not compile. A kernel of
ours makes the table of decays, which the engine makes with PyTorch.
"""

import torch
import triton
import triton.language as tl
from vllm.model_executor.layers.lightning_attn import _fwd_kv_parallel


@triton.jit
def decays(slopes, table, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    head, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(table + head * SIZE + i, tl.exp(-tl.load(slopes + head) * (SIZE - 1 - i)), mask=i < SIZE)


def lightning_attn_kv_parallel(key, value, slopes, chunk_size, kv):
    batch, tokens, heads, dim = key.shape
    value_dim, chunks = value.shape[3], kv.shape[2]
    table = torch.empty((heads, chunk_size), dtype=torch.float32, device=key.device)
    decays[(heads,)](slopes, table, chunk_size, triton.next_power_of_2(chunk_size))
    _fwd_kv_parallel[(batch * heads, chunks)](
        key.transpose(1, 2).contiguous(),
        value.transpose(1, 2).contiguous(),
        table,
        kv,
        batch,
        heads,
        tokens,
        dim,
        value_dim,
        BLOCK=chunk_size,
        NUM_BLOCK=chunks,
        D_FBLOCK=dim,
        E_FBLOCK=value_dim,
        NUM_FBLOCK=1,
        CBLOCK=64,
        NUM_CBLOCK=chunk_size // 64,
    )
