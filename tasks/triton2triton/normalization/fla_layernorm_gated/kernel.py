"""Normalization and gate of one head of one token per program: moments first, then the same values once more."""

import triton
import triton.language as tl


@triton.jit
def gate_head(
    x_ptr,
    gate_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    eps,
    token_stride,
    head_dim,
    SIGMOID: tl.constexpr,
    RMS_NORM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    x_row = (token * tl.num_programs(1) + head) * head_dim
    gate_row = token * token_stride + head * head_dim
    center = 0.0
    if not RMS_NORM:
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, head_dim, BLOCK):
            j = start + tl.arange(0, BLOCK)
            sums += tl.load(x_ptr + x_row + j, mask=j < head_dim, other=0.0).to(tl.float32)
        center = tl.sum(sums, axis=0) / head_dim
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, head_dim, BLOCK):
        j = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + x_row + j, mask=j < head_dim, other=0.0).to(tl.float32)
        off = tl.where(j < head_dim, x - center, 0.0)
        squares += off * off
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / head_dim + eps)
    for start in range(0, head_dim, BLOCK):
        j = start + tl.arange(0, BLOCK)
        inside = j < head_dim
        x = tl.load(x_ptr + x_row + j, mask=inside, other=0.0).to(tl.float32)
        y = (x - center) * scale * tl.load(weight_ptr + j, mask=inside, other=0.0).to(tl.float32)
        if bias_ptr is not None:
            y += tl.load(bias_ptr + j, mask=inside, other=0.0).to(tl.float32)
        gate = tl.load(gate_ptr + gate_row + j, mask=inside, other=0.0).to(tl.float32)
        y *= 1.0 / (1.0 + tl.exp(-gate))
        if not SIGMOID:
            y *= gate
        tl.store(y_ptr + x_row + j, y.to(y_ptr.dtype.element_ty), mask=inside)


def fla_layernorm_gated(x, gate, weight, bias, eps, sigmoid_gate, rms_norm, y):
    num_tokens, num_heads, head_dim = x.shape
    gate_head[(num_tokens, num_heads)](
        x,
        gate,
        weight,
        bias,
        y,
        eps,
        gate.stride(0),
        head_dim,
        SIGMOID=sigmoid_gate,
        RMS_NORM=rms_norm,
        BLOCK=64,
        num_warps=1,
    )
