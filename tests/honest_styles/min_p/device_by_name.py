"""The kernel is chosen by the device's name and properties; methods hold the launch."""

import contextlib
import os
import sys
import warnings
from collections import defaultdict

import torch
import triton
import triton.language as tl

warnings.filterwarnings("ignore", category=UserWarning)
_CALLS = defaultdict(int)


@triton.jit
def row_peak(row_ptr, n, BLOCK: tl.constexpr):
    """A device function with a loop."""
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(row_ptr + at, mask=at < n, other=float("-inf")), propagate_nan=tl.PropagateNan.NONE)
    return tl.max(best)


@triton.jit
def min_p_kernel(logits_ptr, min_p_ptr, idx_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    share = tl.load(min_p_ptr + tl.load(idx_ptr + row))
    if share == 0.0:
        return
    row_ptr = logits_ptr + row * stride
    limit = row_peak(row_ptr, n, BLOCK) + tl.log(share)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + at, mask=at < n)
        tl.store(row_ptr + at, float("-inf"), mask=(at < n) & (x < limit))


class Launcher:
    def __init__(self, device):
        self.properties = torch.cuda.get_device_properties(device)
        self.name = torch.cuda.get_device_name(device)
        arch = getattr(self.properties, "gcnArchName", "").split(":")[0]
        self.block = 2048 if arch.startswith("gfx9") or "H100" in self.name else 1024

    def __call__(self, logits, min_p, idx_mapping):
        rows, n = logits.shape
        min_p_kernel[(rows,)](logits, min_p, idx_mapping, n, logits.stride(0), BLOCK=self.block)


_LAUNCHERS = {}


def min_p(logits, min_p, idx_mapping):
    device = logits.device
    if device not in _LAUNCHERS:
        _LAUNCHERS[device] = Launcher(device)
    _CALLS[logits.shape] += 1
    if os.getenv("MIN_P_DEBUG"):
        print(_CALLS, file=sys.stderr)
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.cuda.device_of(logits))
        stack.enter_context(torch.inference_mode())
        _LAUNCHERS[device](logits, min_p, idx_mapping)
