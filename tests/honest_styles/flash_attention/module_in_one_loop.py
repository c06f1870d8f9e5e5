"""A module with the published interface and its unused buffer. One loop over keys, all of it masked."""

import math

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, S, scale, D: tl.constexpr, BD: tl.constexpr, BQ: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * S * D
    i = tl.program_id(0) * BQ + tl.arange(0, BQ)
    d = tl.arange(0, BD)
    q = tl.load(q_ptr + base + i[:, None] * D + d, mask=(i < S)[:, None] & (d < D), other=0.0)
    m = tl.full((BQ,), float("-inf"), tl.float32)
    s = tl.zeros((BQ,), tl.float32)
    o = tl.zeros((BQ, BD), tl.float32)
    for start in range(0, tl.program_id(0) * BQ + BQ, BQ):
        j = start + tl.arange(0, BQ)
        inside = (j < S)[:, None] & (d < D)
        k = tl.load(k_ptr + base + j[:, None] * D + d, mask=inside, other=0.0)
        v = tl.load(v_ptr + base + j[:, None] * D + d, mask=inside, other=0.0)
        scores = tl.where(i[:, None] >= j[None, :], tl.dot(q, k.T) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, 1))
        p = tl.exp(scores - m_new[:, None])
        shrink = tl.exp(m - m_new)
        s = s * shrink + tl.sum(p, 1)
        o = o * shrink[:, None] + tl.dot(p.to(tl.bfloat16), v)
        m = m_new
    tl.store(o_ptr + base + i[:, None] * D + d, (o / s[:, None]).to(tl.bfloat16), mask=(i < S)[:, None] & (d < D))


class Model(nn.Module):
    def __init__(self, B: int, H: int, S: int, D: int):
        super().__init__()
        self.B, self.H, self.S, self.D = B, H, S, D
        self.register_buffer("_dummy", torch.zeros(1, dtype=torch.bfloat16))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(q)
        block = max(16, triton.next_power_of_2(self.D))
        grid = (triton.cdiv(self.S, 32), self.B * self.H)
        attention[grid](q, k, v, out, self.S, 1.0 / math.sqrt(self.D), D=self.D, BD=block, BQ=32)
        return out
