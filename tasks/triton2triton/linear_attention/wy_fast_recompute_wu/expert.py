"""WY vectors on matrix units: the columns of `a` are scaled, once for all columns of keys and values.

w[i] = sum of (a[i, j] * scale[j]) * key[j]: keys and values then enter the products as they were read. float32 is
multiplied as three TF32 products on NVIDIA: with 32 columns, three programs of four warps fit on an SM.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _apply(scaled, source, stride, target, out_stride, inside, WIDTH: tl.constexpr, COLUMNS: tl.constexpr):
    """Target rows = scaled @ source rows, for all columns; rows outside of the chunk are left out."""
    kind = source.dtype.element_ty
    scaled = scaled.to(kind)
    for start in range(0, WIDTH, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        mask = inside[:, None]
        if WIDTH % COLUMNS != 0:
            mask = mask & (columns < WIDTH)[None, :]
        loaded = tl.load(source + stride[:, None] + columns[None, :], mask=mask, other=0.0)
        result = tl.dot(scaled, loaded, input_precision=PRECISION)
        tl.store(target + out_stride[:, None] + columns[None, :], result.to(target.dtype.element_ty), mask=mask)


@triton.jit
def _chunk_vectors(
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
    HEAD_DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """One chunk and value head; heads run fastest, so that those that share a key head find it in the cache."""
    chunk = (tl.program_id(0) // num_value_heads).to(tl.int64)
    head = tl.program_id(0) % num_value_heads
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + chunk * 2 + 1) * CHUNK
        length = tl.load(cu_seqlens_ptr + seq + 1) - begin
        rows = tl.arange(0, CHUNK)
        inside = rows < length
        tokens = begin.to(tl.int64) + rows
        head_rows = tokens * num_value_heads + head
        key_rows = tokens * num_key_heads + head // (num_value_heads // num_key_heads)
        # Up to the end of 16 columns, so that whole vectors are read.
        mask = inside[:, None] & ((rows // 16 * 16)[None, :] <= rows[:, None])
        a = tl.load(a_ptr + head_rows[:, None] * CHUNK + rows[None, :], mask=mask, other=0.0)
        a = tl.where(rows[:, None] >= rows[None, :], a, 0.0).to(tl.float32)
        beta = tl.load(beta_ptr + head_rows, mask=inside, other=0.0).to(tl.float32)
        g = tl.load(g_ptr + head_rows, mask=inside, other=0.0)
        scaled = a * beta[None, :]
        value_rows = head_rows * VALUE_DIM
        _apply(scaled, value_ptr, value_rows, u_ptr, value_rows, inside, VALUE_DIM, COLUMNS)
        scaled *= tl.exp(g)[None, :]
        _apply(scaled, key_ptr, key_rows * HEAD_DIM, w_ptr, head_rows * HEAD_DIM, inside, HEAD_DIM, COLUMNS)


def wy_fast_recompute_wu(key, value, beta, g, a, cu_seqlens, chunk_indices, w, u):
    _, num_value_heads, chunk_size = a.shape
    head_dim, value_dim = key.shape[2], value.shape[2]
    widest = 32 if key.element_size() == 4 else 64 if chunk_size == 64 else 128
    columns = min(widest, max(16, triton.next_power_of_2(max(head_dim, value_dim))))
    _chunk_vectors[(chunk_indices.shape[0] * num_value_heads,)](
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
        HEAD_DIM=head_dim,
        VALUE_DIM=value_dim,
        CHUNK=chunk_size,
        COLUMNS=columns,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
