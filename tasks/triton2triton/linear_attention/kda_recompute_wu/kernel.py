"""WY factors of a chunk: one launch for w and decayed keys, one for u, each in tiles of tokens by channels."""

import triton
import triton.language as tl


@triton.jit
def chunk_bounds(cu_seqlens_ptr, chunk_indices_ptr, chunk, chunk_size):
    """First token and length of a chunk; nothing past the last chunk."""
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    number = tl.load(chunk_indices_ptr + 2 * chunk + 1)
    used = seq >= 0
    begin = tl.load(cu_seqlens_ptr + seq, mask=used, other=0) + number * chunk_size
    end = tl.load(cu_seqlens_ptr + seq + 1)
    return begin, tl.where(used, tl.minimum(end - begin, chunk_size), 0)


@triton.jit
def decayed_key_factor(
    key_ptr,
    beta_ptr,
    g_ptr,
    inverse_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    w_ptr,
    kg_ptr,
    num_heads,
    head_dim,
    chunk_size,
    TILE: tl.constexpr,
):
    """w and kg of a tile of one chunk and head."""
    head = tl.program_id(0) % num_heads
    begin, length = chunk_bounds(cu_seqlens_ptr, chunk_indices_ptr, tl.program_id(0) // num_heads, chunk_size)
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    d = tl.program_id(2) * TILE + tl.arange(0, TILE)
    rows = (begin + i).to(tl.int64) * num_heads + head
    acc = tl.zeros((TILE, TILE), tl.float32)
    for tile in range(tl.program_id(1) + 1):
        j = tile * TILE + tl.arange(0, TILE)
        seen = (i < length)[:, None] & (j[None, :] <= i[:, None])
        inverse = tl.load(inverse_ptr + rows[:, None] * chunk_size + j[None, :], mask=seen, other=0.0)
        others = (begin + j).to(tl.int64) * num_heads + head
        mask = (j < length)[:, None] & (d < head_dim)[None, :]
        keys = tl.load(key_ptr + others[:, None] * head_dim + d[None, :], mask=mask, other=0.0).to(tl.float32)
        gates = tl.load(g_ptr + others[:, None] * head_dim + d[None, :], mask=mask, other=0.0)
        beta = tl.load(beta_ptr + others, mask=j < length, other=0.0).to(tl.float32)
        keys = keys * beta[:, None] * tl.exp(gates)
        acc += tl.dot(inverse, keys.to(inverse.dtype), input_precision="ieee")
    mask = (i < length)[:, None] & (d < head_dim)[None, :]
    place = rows[:, None] * head_dim + d[None, :]
    tl.store(w_ptr + place, acc.to(w_ptr.dtype.element_ty), mask=mask)
    last = (begin + length - 1).to(tl.int64) * num_heads + head
    end_gates = tl.load(g_ptr + last * head_dim + d, mask=(d < head_dim) & (length > 0), other=0.0)
    decay = tl.exp(end_gates[None, :] - tl.load(g_ptr + place, mask=mask, other=0.0))
    key = tl.load(key_ptr + place, mask=mask, other=0.0).to(tl.float32)
    tl.store(kg_ptr + place, (key * decay).to(kg_ptr.dtype.element_ty), mask=mask)


@triton.jit
def value_factor(
    value_ptr,
    beta_ptr,
    inverse_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    u_ptr,
    num_heads,
    value_dim,
    chunk_size,
    TILE: tl.constexpr,
):
    """u of a tile of one chunk and head."""
    head = tl.program_id(0) % num_heads
    begin, length = chunk_bounds(cu_seqlens_ptr, chunk_indices_ptr, tl.program_id(0) // num_heads, chunk_size)
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    e = tl.program_id(2) * TILE + tl.arange(0, TILE)
    rows = (begin + i).to(tl.int64) * num_heads + head
    acc = tl.zeros((TILE, TILE), tl.float32)
    for tile in range(tl.program_id(1) + 1):
        j = tile * TILE + tl.arange(0, TILE)
        seen = (i < length)[:, None] & (j[None, :] <= i[:, None])
        inverse = tl.load(inverse_ptr + rows[:, None] * chunk_size + j[None, :], mask=seen, other=0.0)
        others = (begin + j).to(tl.int64) * num_heads + head
        mask = (j < length)[:, None] & (e < value_dim)[None, :]
        values = tl.load(value_ptr + others[:, None] * value_dim + e[None, :], mask=mask, other=0.0).to(tl.float32)
        beta = tl.load(beta_ptr + others, mask=j < length, other=0.0).to(tl.float32)
        acc += tl.dot(inverse, (values * beta[:, None]).to(inverse.dtype), input_precision="ieee")
    mask = (i < length)[:, None] & (e < value_dim)[None, :]
    tl.store(u_ptr + rows[:, None] * value_dim + e[None, :], acc.to(u_ptr.dtype.element_ty), mask=mask)


def kda_recompute_wu(key, value, beta, g, inverse, cu_seqlens, chunk_indices, w, u, kg):
    num_heads, head_dim = key.shape[1:]
    value_dim, chunk_size = value.shape[2], inverse.shape[2]
    # float32 operands take twice the memory, and their products no matrix units.
    tile = 32 if key.element_size() == 4 else 64
    chunks, tiles = chunk_indices.shape[0] * num_heads, triton.cdiv(chunk_size, tile)
    # The loops have few steps, most of them one: buffers for loads ahead would only take room from other programs.
    options = {"TILE": tile, "num_warps": 8, "num_stages": 1}
    decayed_key_factor[(chunks, tiles, triton.cdiv(head_dim, tile))](
        key, beta, g, inverse, cu_seqlens, chunk_indices, w, kg, num_heads, head_dim, chunk_size, **options
    )
    value_factor[(chunks, tiles, triton.cdiv(value_dim, tile))](
        value, beta, inverse, cu_seqlens, chunk_indices, u, num_heads, value_dim, chunk_size, **options
    )
