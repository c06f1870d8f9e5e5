"""FLA's cumulative sums by head, tuned by Triton."""

from fla.ops.utils.cumsum import chunk_local_cumsum_scalar_kernel


def fla_cumsum_scalar(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    tokens, heads = g.shape
    chunk_local_cumsum_scalar_kernel[(chunk_indices.shape[0] * heads,)](
        s=g,
        o=sums,
        scale=scale,
        cu_seqlens=cu_seqlens,
        chunk_indices=chunk_indices,
        T=tokens,
        B=1,
        H=heads,
        BT=chunk_size,
        REVERSE=reverse,
        USE_GRAPH=True,
    )
