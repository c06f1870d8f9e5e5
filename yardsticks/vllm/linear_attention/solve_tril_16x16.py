"""vLLM's inverses of small triangular matrices, tuned by Triton: FLA's kernel, without tensor descriptors."""

import triton
from vllm.third_party.flash_linear_attention.ops.solve_tril import solve_tril_16x16_kernel


def solve_tril_16x16(a, inverse):
    batch, seq_len, heads, size = a.shape
    solve_tril_16x16_kernel[(triton.cdiv(seq_len, 16), batch * heads)](
        A=a,
        Ai=inverse,
        cu_seqlens=None,
        chunk_indices=None,
        T=seq_len,
        H=heads,
        BT=size,
        USE_TMA=False,
        DOT_PRECISION="ieee",
    )
