"""Autotuned, with configurations pruned by an own function, a key, and heuristics."""

from typing import Any, Dict, List

import torch
import triton
import triton.language as tl


def configurations() -> List[triton.Config]:
    return [
        triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
        for block in (256, 1024)
        for warps in (2, 4)
        for stages in (1, 2)
    ]


def prune(configs: List[triton.Config], named_args: Dict[str, Any], **kwargs: Any) -> List[triton.Config]:
    width = triton.next_power_of_2(named_args["N"])
    kept = [config for config in configs if config.kwargs["BLOCK"] <= max(256, width) and config.num_stages == 1]
    return kept or configs[:1]


@triton.autotune(configs=configurations(), key=["N"], prune_configs_by={"early_config_prune": prune}, warmup=1, rep=2)
@triton.heuristics({"EVEN": lambda args: args["N"] % args["BLOCK"] == 0})
@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    y_ptr += row * N
    peak = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        if EVEN:
            x = tl.load(x_ptr + at).to(tl.float32)
        else:
            x = tl.load(x_ptr + at, mask=at < N, other=float("-inf")).to(tl.float32)
        new_peak = tl.maximum(peak, tl.max(x, 0))
        total = total * tl.exp(peak - new_peak) + tl.sum(tl.exp(x - new_peak), 0)
        peak = new_peak
    shift = peak + tl.log(total)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < N
        x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
        tl.store(y_ptr + at, (x - shift).to(y_ptr.dtype.element_ty), mask=mask)


@torch.no_grad()
def log_softmax(x, y):
    M, N = x.shape
    with torch.cuda.device(x.device.index or 0):
        log_softmax_kernel[(M,)](x, y, x.stride(0), N)
