"""SGLang's correction of one rank's attention. It needs powers of two for heads and ranks."""

from sglang.kernels.ops.attention.dcp_kernels import _correct_attn_cp_out_kernel


def correct_attn_cp_out(attn_out, lses, rank, base2, out, lse):
    ranks, tokens, heads = lses.shape
    _correct_attn_cp_out_kernel[(tokens, heads, 1)](
        attn_out,
        out,
        lses,
        lse,
        attn_out.stride(0),
        attn_out.stride(1),
        attn_out.stride(2),
        lses.stride(0),
        lses.stride(1),
        lses.stride(2),
        out.stride(1),
        out.stride(0),
        out.stride(2),
        rank,
        HEAD_DIM=attn_out.shape[2],
        N_ROUNDED=ranks,
        IS_LSE_BASE_ON_E=not base2,
    )
