"""FLA's cumulative sums by channel, tuned by Triton. Its tokens are contiguous, so a slice of wider rows is copied."""

import triton
from fla.ops.utils.cumsum import chunk_local_cumsum_vector_kernel


def fla_cumsum_vector(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    tokens, heads, dim = g.shape
    chunks = chunk_indices.shape[0]
    chunk_local_cumsum_vector_kernel[lambda meta: (triton.cdiv(dim, meta["BS"]) * chunks, heads)](
        s=g.contiguous(),
        o=sums,
        scale=scale,
        cu_seqlens=cu_seqlens,
        chunk_indices=chunk_indices,
        T=tokens,
        B=1,
        H=heads,
        S=dim,
        BT=chunk_size,
        REVERSE=reverse,
        USE_GRAPH=True,
    )
