"""vLLM's inverses of small triangular matrices, tuned by Triton: FLA's kernel, without tensor descriptors.

It takes entries on and above the diagonal to be 0, where the task has anything. A kernel of ours clears them; its time
counts.
"""

import torch
import triton
import triton.language as tl
from vllm.third_party.flash_linear_attention.ops.solve_tril import solve_tril_16x16_kernel

make_tensor_descriptor = tl.make_tensor_descriptor


@triton.jit
def below_diagonals(a, lower, seq_len, heads, width, BLOCK: tl.constexpr):
    batch_head = tl.program_id(1)
    row, column = tl.arange(0, 16), tl.arange(0, BLOCK)
    token = tl.program_id(0) * 16 + row
    line = ((batch_head // heads) * seq_len + token).to(tl.int64) * heads + batch_head % heads
    place = line[:, None] * width + column[None, :]
    inside = (token < seq_len)[:, None] & (column < width)[None, :]
    kept = inside & ((column % 16)[None, :] < row[:, None])
    tl.store(lower + place, tl.load(a + place, mask=kept, other=0.0), mask=inside)


def solve_tril_16x16(a, inverse):
    batch, seq_len, heads, size = a.shape
    lower = torch.empty_like(a)
    grid = (triton.cdiv(seq_len, 16), batch * heads)
    below_diagonals[grid](a, lower, seq_len, heads, size, triton.next_power_of_2(size))
    solve_tril_16x16_kernel[grid](
        A=lower,
        Ai=inverse,
        cu_seqlens=None,
        chunk_indices=None,
        T=seq_len,
        H=heads,
        BT=size,
        USE_TMA=False,
        DOT_PRECISION="ieee",
    )
