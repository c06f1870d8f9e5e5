"""A module with the published interface. A row lies in registers, and 33 halvings find the least key that is kept."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def nucleus(logits_ptr, mask_ptr, V, p, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    token = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * V + token, mask=token < V, other=float("-inf"))
    weight = tl.exp(x - tl.max(x, axis=0))
    goal = tl.sum(weight, axis=0) * p
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    low = tl.full((), -2147483649, tl.int64)
    high = tl.full((), 2147483647, tl.int64)
    for _ in range(33):
        middle = low + (high - low + 1) // 2
        enough = tl.sum(tl.where(key >= middle, weight, 0.0), axis=0) >= goal
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    above = tl.sum(tl.where(key > low, weight, 0.0), axis=0)
    equal = tl.where(key == low, weight, 0.0)
    before = above + tl.cumsum(equal, axis=0) - equal
    keep = (key > low) | ((key == low) & (before < goal))
    tl.store(mask_ptr + row * V + token, keep, mask=token < V)


class Model(nn.Module):
    def __init__(self, B: int, V: int, P: float):
        super().__init__()
        self.B, self.V, self.P = B, V, P
        self.register_buffer("_dummy", torch.zeros(1, dtype=torch.float32))

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        mask = torch.empty(self.B, self.V, dtype=torch.bool, device=logits.device)
        nucleus[(self.B,)](logits, mask, self.V, self.P, BLOCK=triton.next_power_of_2(self.V), num_warps=8)
        return mask
