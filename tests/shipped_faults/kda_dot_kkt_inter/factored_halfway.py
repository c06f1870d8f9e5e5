"""expect: wrong_result. Overflow: exponents are split halfway between chunk and sub-block, good for slow decays."""

import torch
import triton
import triton.language as tl

# What matrix units of NVIDIA make of decayed vectors. One product of TF32 keeps too few bits for float16.
TF32 = {torch.bfloat16: "tf32", torch.float16: "tf32x3"}


@triton.jit
def products_with_earlier(
    query_ptr,
    key_ptr,
    beta_ptr,
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    kk_ptr,
    qk_ptr,
    sub_block,
    sm_scale,
    num_heads,
    head_dim,
    chunk_size,
    TOKENS: tl.constexpr,
    KEYS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    chunk = tl.program_id(0) // num_heads
    head = tl.program_id(0) % num_heads
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * chunk_size
    end = tl.load(cu_seqlens_ptr + seq + 1)
    first = begin + tl.program_id(1) * sub_block
    # Where a sub-block has a row, all earlier ones are full.
    if first >= end:
        return
    lane = tl.arange(0, TOKENS)
    column_mask = lane < sub_block
    row_mask = column_mask & (first + lane < end)
    rows = (first + lane).to(tl.int64) * num_heads + head
    reference_row = (begin + (first - begin) // 2).to(tl.int64) * num_heads + head
    beta = tl.load(beta_ptr + rows, mask=row_mask, other=0.0).to(tl.float32)
    for block in range(tl.program_id(1)):
        columns = (begin + block * sub_block + lane).to(tl.int64) * num_heads + head
        kk = tl.zeros((TOKENS, TOKENS), tl.float32)
        qk = tl.zeros((TOKENS, TOKENS), tl.float32)
        for start in range(0, head_dim, KEYS):
            d = start + tl.arange(0, KEYS)
            at = tl.load(g_ptr + reference_row * head_dim + d, mask=d < head_dim, other=0.0)
            mask = row_mask[:, None] & (d < head_dim)[None, :]
            place = rows[:, None] * head_dim + d[None, :]
            after = tl.exp(tl.load(g_ptr + place, mask=mask, other=0.0) - at[None, :])
            row_keys = tl.load(key_ptr + place, mask=mask, other=0.0).to(tl.float32) * after
            row_queries = tl.load(query_ptr + place, mask=mask, other=0.0).to(tl.float32) * after
            mask = (d < head_dim)[:, None] & column_mask[None, :]
            place = columns[None, :] * head_dim + d[:, None]
            before = tl.exp(at[:, None] - tl.load(g_ptr + place, mask=mask, other=0.0))
            keys = tl.load(key_ptr + place, mask=mask, other=0.0).to(tl.float32) * before
            kk += tl.dot(row_keys, keys, input_precision=PRECISION)
            qk += tl.dot(row_queries, keys, input_precision=PRECISION)
        out = rows[:, None] * chunk_size + (block * sub_block + lane)[None, :]
        mask = row_mask[:, None] & column_mask[None, :]
        tl.store(kk_ptr + out, kk * beta[:, None], mask=mask)
        tl.store(qk_ptr + out, (qk * sm_scale).to(qk_ptr.dtype.element_ty), mask=mask)


def kda_dot_kkt_inter(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    num_heads, head_dim = key.shape[1:]
    chunk_size = kk.shape[2]
    tokens = max(16, triton.next_power_of_2(sub_block))
    precision = "ieee" if torch.version.hip else TF32.get(key.dtype, "ieee")
    products_with_earlier[(chunk_indices.shape[0] * num_heads, chunk_size // sub_block)](
        query,
        key,
        beta,
        g,
        cu_seqlens,
        chunk_indices,
        kk,
        qk,
        sub_block,
        sm_scale,
        num_heads,
        head_dim,
        chunk_size,
        TOKENS=tokens,
        # Three products need twice the registers of one.
        KEYS=16 if precision == "tf32x3" else 32,
        PRECISION=precision,
        # Matrix units multiply 16 rows for one warp: more warps would decay the same vectors again.
        num_warps=4 if precision == "ieee" else tokens // 16,
    )
