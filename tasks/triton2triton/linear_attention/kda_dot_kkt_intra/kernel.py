"""Products inside sub-blocks: one program per 16 rows of a sub-block and head, one column after the other."""

import triton
import triton.language as tl


@triton.jit
def products_inside(
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
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    chunk = tl.program_id(0) // num_heads
    head = tl.program_id(0) % num_heads
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * chunk_size
    end = tl.load(cu_seqlens_ptr + seq + 1)
    left = tl.program_id(1) * sub_block
    i = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, KEYS)
    row_mask = (i < sub_block) & (begin + left + i < end)
    rows = (begin + left + i).to(tl.int64) * num_heads + head
    mask = row_mask[:, None] & (d < head_dim)[None, :]
    place = rows[:, None] * head_dim + d[None, :]
    queries = tl.load(query_ptr + place, mask=mask, other=0.0).to(tl.float32)
    keys = tl.load(key_ptr + place, mask=mask, other=0.0).to(tl.float32)
    gates = tl.load(g_ptr + place, mask=mask, other=0.0)
    beta = tl.load(beta_ptr + rows, mask=row_mask, other=0.0).to(tl.float32)
    for j in range(sub_block):
        column_mask = (d < head_dim) & (begin + left + j < end)
        column = ((begin + left + j).to(tl.int64) * num_heads + head) * head_dim + d
        other = tl.load(key_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
        other_gates = tl.load(g_ptr + column, mask=column_mask, other=0.0)
        decayed = tl.exp(gates - other_gates[None, :]) * other[None, :]
        kk = tl.where(i > j, tl.sum(keys * decayed, axis=1) * beta, 0.0)
        qk = tl.where(i >= j, tl.sum(queries * decayed, axis=1) * sm_scale, 0.0)
        tl.store(kk_ptr + rows * chunk_size + left + j, kk, mask=row_mask)
        tl.store(qk_ptr + rows * chunk_size + left + j, qk.to(qk_ptr.dtype.element_ty), mask=row_mask)


def kda_dot_kkt_intra(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    num_heads, head_dim = key.shape[1:]
    chunk_size = kk.shape[2]
    grid = (chunk_indices.shape[0] * num_heads, chunk_size // sub_block, triton.cdiv(sub_block, 16))
    products_inside[grid](
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
        ROWS=16,
        KEYS=triton.next_power_of_2(head_dim),
    )
