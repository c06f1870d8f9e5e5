"""Normalization and gate of four heads of one token per program: every value is read once."""

import triton
import triton.language as tl


@triton.jit
def gate_heads(
    x_ptr,
    gate_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    eps,
    token_stride,
    num_heads,
    head_dim,
    SIGMOID: tl.constexpr,
    RMS_NORM: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    j = tl.arange(0, BLOCK)
    in_head = j < head_dim
    inside = (heads < num_heads)[:, None] & in_head[None, :]
    offsets = heads[:, None] * head_dim + j[None, :]
    places = token * num_heads * head_dim + offsets
    x = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    if not RMS_NORM:
        mean = tl.sum(x, axis=1) / head_dim
        x = tl.where(inside, x - mean[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / head_dim + eps)
    y = x * scale[:, None] * tl.load(weight_ptr + j, mask=in_head, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        y += tl.load(bias_ptr + j, mask=in_head, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + token * token_stride + offsets, mask=inside, other=0.0).to(tl.float32)
    y *= 1.0 / (1.0 + tl.exp(-gate))
    if not SIGMOID:
        y *= gate
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fla_layernorm_gated(x, gate, weight, bias, eps, sigmoid_gate, rms_norm, y):
    num_tokens, num_heads, head_dim = x.shape
    gate_heads[(num_tokens, triton.cdiv(num_heads, 4))](
        x,
        gate,
        weight,
        bias,
        y,
        eps,
        gate.stride(0),
        num_heads,
        head_dim,
        SIGMOID=sigmoid_gate,
        RMS_NORM=rms_norm,
        HEADS=4,
        BLOCK=triton.next_power_of_2(head_dim),
    )
