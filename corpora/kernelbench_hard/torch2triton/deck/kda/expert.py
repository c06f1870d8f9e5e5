"""Kimi Delta Attention in chunks of 16 tokens: one program carries the state of a head, for some columns of values.

In a chunk, decays are taken relative to its middle. At -5 a token an exponent is then within 40 of 0, so that no factor
overflows, and none that counts becomes 0.
"""

import triton
import triton.language as tl


@triton.jit
def scan_head(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    beta_ptr,
    out_ptr,
    T,
    H,
    scale,
    K: tl.constexpr,
    V: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    CHUNK: tl.constexpr = 16
    batch, head = tl.program_id(0).to(tl.int64) // H, tl.program_id(0).to(tl.int64) % H
    rows = tl.arange(0, CHUNK)
    channels = tl.arange(0, BLOCK_K)
    columns = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    channel_mask, column_mask = (channels < K)[None, :], (columns < V)[None, :]
    unit = (rows[:, None] == rows[None, :]).to(tl.float32)
    state = tl.zeros((BLOCK_K, BLOCK_V), dtype=tl.float32)
    for start in range(0, T, CHUNK):
        tokens = (batch * T + start + rows) * H + head
        place = tokens[:, None] * K + channels[None, :]
        q = tl.load(q_ptr + place, mask=channel_mask, other=0.0).to(tl.float32)
        k = tl.load(k_ptr + place, mask=channel_mask, other=0.0).to(tl.float32)
        g = tl.cumsum(tl.load(g_ptr + place, mask=channel_mask, other=0.0), axis=0)
        v = tl.load(v_ptr + tokens[:, None] * V + columns[None, :], mask=column_mask, other=0.0).to(tl.float32)
        beta = tl.load(beta_ptr + tokens).to(tl.float32)[:, None]
        middle = tl.sum(tl.where(rows[:, None] == CHUNK // 2, g, 0.0), axis=0)[None, :]
        last = tl.sum(tl.where(rows[:, None] == CHUNK - 1, g, 0.0), axis=0)[None, :]
        since = tl.exp(g - middle)
        until = tl.trans(k * tl.exp(middle - g))
        overlaps = tl.dot(k * since, until, input_precision="ieee")
        overlaps = tl.where(rows[:, None] > rows[None, :], beta * overlaps, 0.0)
        scores = tl.dot(q * since, until, input_precision="ieee")
        scores = tl.where(rows[:, None] >= rows[None, :], scores, 0.0)
        # The inverse of unit + overlaps: overlaps to the power of 16 is 0.
        inverse = unit - overlaps
        power = tl.dot(overlaps, overlaps, input_precision="ieee")
        inverse += tl.dot(inverse, power, input_precision="ieee")
        power = tl.dot(power, power, input_precision="ieee")
        inverse += tl.dot(inverse, power, input_precision="ieee")
        power = tl.dot(power, power, input_precision="ieee")
        inverse += tl.dot(inverse, power, input_precision="ieee")
        decay = tl.exp(g)
        change = tl.dot(inverse, beta * (v - tl.dot(k * decay, state, input_precision="ieee")), input_precision="ieee")
        out = tl.dot(q * decay, state, input_precision="ieee") + tl.dot(scores, change, input_precision="ieee")
        out = (out * scale).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + tokens[:, None] * V + columns[None, :], out, mask=column_mask)
        lasting = tl.trans(k * tl.exp(last - g))
        state = tl.trans(tl.exp(last)) * state + tl.dot(lasting, change, input_precision="ieee")


def attend_by_delta_rule(q, k, v, g, beta, out):
    B, T, H, K = q.shape
    V = v.shape[3]
    block_v = 32 if V > 16 else 16
    scan_head[(B * H, triton.cdiv(V, block_v))](
        q,
        k,
        v,
        g,
        beta,
        out,
        T,
        H,
        K**-0.5,
        K=K,
        V=V,
        BLOCK_K=max(16, triton.next_power_of_2(K)),
        BLOCK_V=block_v,
        num_warps=4,
        num_stages=1,
    )
