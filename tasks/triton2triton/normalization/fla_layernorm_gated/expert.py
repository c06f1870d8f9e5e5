"""Gated normalization of several heads at once, each held in registers: 2048 values for four warps.

The baseline loads gate only after the moments of x, in tiles of four heads. Here x and gate are loaded at the start, 16
values of each for a thread (eight where a warp has 64 lanes), in loads of up to 16 bytes. A tile may have heads of
several tokens; they share the load of the weights.
"""

import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def _gate_heads(
    x_ptr,
    gate_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    eps,
    token_stride,
    all_heads,
    NUM_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SIGMOID: tl.constexpr,
    RMS_NORM: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Results of ROWS neighbouring heads, counted over all tokens."""
    heads = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    real = columns < HEAD_DIM
    inside = (heads < all_heads)[:, None] & real[None, :]
    places = (heads.to(tl.int64) * HEAD_DIM)[:, None] + columns[None, :]
    gate_starts = (heads // NUM_HEADS).to(tl.int64) * token_stride + heads % NUM_HEADS * HEAD_DIM
    x = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + gate_starts[:, None] + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=real, other=0.0).to(tl.float32)
    if not RMS_NORM:
        center = tl.sum(x, axis=1) / HEAD_DIM
        x = tl.where(real[None, :], x - center[:, None], 0.0)
    scales = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / HEAD_DIM + eps)
    y = x * scales[:, None] * weight[None, :]
    if bias_ptr is not None:
        y += tl.load(bias_ptr + columns, mask=real, other=0.0).to(tl.float32)[None, :]
    opened = 1.0 / (1.0 + tl.exp2(gate * -1.4426950408889634))
    y *= opened if SIGMOID else opened * gate
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fla_layernorm_gated(x, gate, weight, bias, eps, sigmoid_gate, rms_norm, y):
    num_tokens, num_heads, head_dim = x.shape
    block = triton.next_power_of_2(head_dim)
    rows = TILE_ELEMENTS // block
    all_heads = num_tokens * num_heads
    _gate_heads[(triton.cdiv(all_heads, rows),)](
        x,
        gate,
        weight,
        bias,
        y,
        eps,
        gate.stride(0),
        all_heads,
        NUM_HEADS=num_heads,
        HEAD_DIM=head_dim,
        SIGMOID=sigmoid_gate,
        RMS_NORM=rms_norm,
        ROWS=rows,
        BLOCK=block,
        num_warps=4,
    )
