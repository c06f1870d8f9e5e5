"""WY vectors of a chunk: one program per chunk and value head, first u and then w, 32 or 64 columns at a time."""

import triton
import triton.language as tl


@triton.jit
def chunk_vectors(
    key_ptr,
    value_ptr,
    beta_ptr,
    g_ptr,
    a_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    w_ptr,
    u_ptr,
    num_key_heads,
    num_value_heads,
    head_dim,
    value_dim,
    CHUNK: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    chunk = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + chunk * 2 + 1) * CHUNK
        end = tl.load(cu_seqlens_ptr + seq + 1)
        rows = tl.arange(0, CHUNK)
        tokens = begin.to(tl.int64) + rows
        inside = tokens < end
        head_rows = tokens * num_value_heads + head
        key_rows = tokens * num_key_heads + head // (num_value_heads // num_key_heads)

        triangle = inside[:, None] & (rows[:, None] >= rows[None, :])
        a = tl.load(a_ptr + head_rows[:, None] * CHUNK + rows[None, :], mask=triangle, other=0.0)
        beta = tl.load(beta_ptr + head_rows, mask=inside, other=0.0).to(tl.float32)
        for start in range(0, value_dim, COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            mask = inside[:, None] & (columns < value_dim)[None, :]
            offsets = head_rows[:, None] * value_dim + columns[None, :]
            value = tl.load(value_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
            u = tl.dot(a, (value * beta[:, None]).to(a.dtype), input_precision="ieee")
            tl.store(u_ptr + offsets, u.to(u_ptr.dtype.element_ty), mask=mask)

        factor = beta * tl.exp(tl.load(g_ptr + head_rows, mask=inside, other=0.0))
        for start in range(0, head_dim, COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            mask = inside[:, None] & (columns < head_dim)[None, :]
            key = tl.load(key_ptr + key_rows[:, None] * head_dim + columns[None, :], mask=mask, other=0.0)
            w = tl.dot(a, (key.to(tl.float32) * factor[:, None]).to(a.dtype), input_precision="ieee")
            target = w_ptr + head_rows[:, None] * head_dim + columns[None, :]
            tl.store(target, w.to(w_ptr.dtype.element_ty), mask=mask)


def wy_fast_recompute_wu(key, value, beta, g, a, cu_seqlens, chunk_indices, w, u):
    _, num_value_heads, chunk_size = a.shape
    single = value.element_size() == 4  # products of float32 need more registers
    chunk_vectors[(chunk_indices.shape[0], num_value_heads)](
        key,
        value,
        beta,
        g,
        a,
        cu_seqlens,
        chunk_indices,
        w,
        u,
        key.shape[1],
        num_value_heads,
        key.shape[2],
        value.shape[2],
        CHUNK=chunk_size,
        COLUMNS=32 if single else 64,
        num_warps=8 if single else 4,
        num_stages=1 if single else 3,
    )
