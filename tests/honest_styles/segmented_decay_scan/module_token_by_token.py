"""A module with the published interface and its unused buffer. A program walks over all tokens of some channels."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def walk(x_ptr, decay_ptr, resets_ptr, out_ptr, T, D, BLOCK: tl.constexpr):
    sequence = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.zeros((BLOCK,), tl.float32)
    for t in range(T):
        offset = (sequence * T + t) * D + channel
        x = tl.load(x_ptr + offset, mask=channel < D, other=0.0).to(tl.float32)
        decay = tl.load(decay_ptr + offset, mask=channel < D, other=0.0)
        if tl.load(resets_ptr + sequence * T + t):
            h = x
        else:
            h = decay * h + x
        tl.store(out_ptr + offset, h.to(tl.bfloat16), mask=channel < D)


class Model(nn.Module):
    def __init__(self, B: int, T: int, D: int):
        super().__init__()
        self.B, self.T, self.D = B, T, D
        self.register_buffer("_dummy", torch.zeros(1, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor, decay: torch.Tensor, resets: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        walk[(triton.cdiv(self.D, 64), self.B)](x, decay, resets, out, self.T, self.D, BLOCK=64)
        return out
