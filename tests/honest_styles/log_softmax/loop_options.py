"""Options of loops and launches, a hook, tuples, joined and permuted values, and views made by host code."""

import torch
import triton
import triton.language as tl


def metadata(grid, kernel, args):
    return {"name": kernel.name, "bytes": 2 * args["N"]}


def hook(nargs):
    assert nargs["N"] > 0


@triton.autotune(configs=[triton.Config({"BLOCK": 512}, num_warps=4, pre_hook=hook)], key=["N"])
@triton.jit(launch_metadata=metadata)
def kernel(x_ptr, y_ptr, strides, N, BLOCK: tl.constexpr, LOW: tl.constexpr = float("-inf")):
    row = tl.program_id(0).to(tl.int64)
    pair = (x_ptr + row * strides[0], y_ptr + row * strides[1])
    tops = tl.full([BLOCK], LOW, tl.float32)
    for start in tl.range(0, N, BLOCK, num_stages=2, loop_unroll_factor=1, flatten=False):
        at = start + tl.arange(0, BLOCK)
        tops = tl.maximum(tops, tl.load(pair[0] + at, mask=at < N, other=LOW).to(tl.float32))
    top, _ = tl.max(tops, axis=0, return_indices=True)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, N, BLOCK, disallow_acc_multi_buffer=True):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(pair[0] + at, mask=at < N, other=LOW, cache_modifier=".ca").to(tl.float32)
        sums += tl.exp(x - top)
    halves = tl.reshape(sums, [2, BLOCK // 2])
    left, right = tl.split(tl.trans(halves))
    total = tl.sum(tl.sum(tl.join(left, right), axis=1), axis=0)
    shift = top + tl.log(total)
    for start in tl.range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(pair[0] + at, mask=at < N, other=0.0).to(tl.float32)
        tl.store(pair[1] + at, (x - shift).to(pair[1].dtype.element_ty), mask=at < N)


def log_softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, N = x.shape
    assert x.ndim == y.dim() == 2 and x.numel() == y.nelement()
    flat = y.flatten().unflatten(0, (rows, N))
    turned = x.t().transpose(0, 1).unsqueeze(0).squeeze(0)[:, :N].narrow(0, 0, rows)
    kernel[(rows, 1)](turned, flat, (turned.stride(0), flat.stride(0)), N, maxnreg=128)
