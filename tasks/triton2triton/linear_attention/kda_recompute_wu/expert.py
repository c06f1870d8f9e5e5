"""WY factors of a chunk in one launch that reads the inverse in vectors, and with 16 bits in tiles of a chunk.

The baseline has a launch of its own for u; here u is a part of the same grid. It also reads the inverse value by
value, since its mask ends anywhere in a vector; here whole vectors are read, and what lies right of the diagonal is
dropped. With 16 bits the keys and values of a chunk are read for its rows only, not for later tiles. Loads are waited
for, not products: eight warps have few registers each, so that more programs fit on a multiprocessor. Keys and gates
are read again out of the cache for kg, rather than kept during the loop. In float32 three TF32 products would take
three times as many.
"""

import triton
import triton.language as tl


@triton.jit
def _chunk_bounds(cu_seqlens_ptr, chunk_indices_ptr, chunk, chunk_size):
    """First token and length of a chunk; nothing past the last chunk."""
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    number = tl.load(chunk_indices_ptr + 2 * chunk + 1)
    used = seq >= 0
    begin = tl.load(cu_seqlens_ptr + seq, mask=used, other=0) + number * chunk_size
    end = tl.load(cu_seqlens_ptr + seq + 1, mask=used, other=0)
    return begin.to(tl.int64), tl.where(used, tl.minimum(end - begin, chunk_size), 0)


@triton.jit
def _decayed_keys(key_ptr, g_ptr, beta_ptr, rows, inside, columns, head_dim):
    """Keys and gates as float32, and keys times beta and decay, of some rows and columns."""
    mask = inside[:, None] & (columns < head_dim)[None, :]
    places = rows[:, None] * head_dim + columns[None, :]
    keys = tl.load(key_ptr + places, mask=mask, other=0.0).to(tl.float32)
    gates = tl.load(g_ptr + places, mask=mask, other=0.0)
    beta = tl.load(beta_ptr + rows, mask=inside, other=0.0).to(tl.float32)
    return keys, gates, keys * beta[:, None] * tl.exp(gates)


@triton.jit
def _values_times_beta(value_ptr, beta_ptr, rows, inside, columns, value_dim):
    """Values of some rows and columns, each row times its beta."""
    mask = inside[:, None] & (columns < value_dim)[None, :]
    values = tl.load(value_ptr + rows[:, None] * value_dim + columns[None, :], mask=mask, other=0.0)
    beta = tl.load(beta_ptr + rows, mask=inside, other=0.0).to(tl.float32)
    return (values.to(tl.float32) * beta[:, None]).to(values.dtype)


@triton.jit
def _triangle(inverse_ptr, starts, inside, i, j):
    """Columns j of the rows i of an inverse, which begin at starts, with zeros right of the diagonal."""
    # Up to the end of 16 columns, so that whole vectors are read.
    mask = inside[:, None] & ((j // 16 * 16)[None, :] <= i[:, None])
    inverse = tl.load(inverse_ptr + starts[:, None] + j[None, :], mask=mask, other=0.0)
    return tl.where(j[None, :] <= i[:, None], inverse, 0.0)


@triton.jit
def _factors(
    key_ptr,
    value_ptr,
    beta_ptr,
    g_ptr,
    inverse_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    w_ptr,
    u_ptr,
    kg_ptr,
    num_heads,
    head_dim,
    value_dim,
    chunk_size,
    key_blocks,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    SEVERAL: tl.constexpr,
):
    """TILE tokens of one chunk and head, and COLUMNS columns: of w and kg in the first blocks, of u in the others."""
    head = tl.program_id(0) % num_heads
    begin, length = _chunk_bounds(cu_seqlens_ptr, chunk_indices_ptr, tl.program_id(0) // num_heads, chunk_size)
    lanes = tl.arange(0, TILE)
    i = tl.program_id(1) * TILE + lanes
    if tl.program_id(1) * TILE >= length:
        return
    inside = i < length
    rows = (begin + i) * num_heads + head
    acc = tl.zeros((TILE, COLUMNS), tl.float32)
    if tl.program_id(2) < key_blocks:
        d = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
        for tile in range(tl.program_id(1) + 1 if SEVERAL else 1):
            j = tile * TILE + lanes
            others = (begin + j) * num_heads + head
            inverse = _triangle(inverse_ptr, rows * chunk_size, inside, i, j)
            _, _, decayed = _decayed_keys(key_ptr, g_ptr, beta_ptr, others, j < length, d, head_dim)
            acc = tl.dot(inverse, decayed.to(inverse.dtype), acc, input_precision="ieee")
        last = (begin + length - 1) * num_heads + head
        end_gates = tl.load(g_ptr + last * head_dim + d, mask=d < head_dim, other=0.0)
        mask = inside[:, None] & (d < head_dim)[None, :]
        places = rows[:, None] * head_dim + d[None, :]
        tl.store(w_ptr + places, acc.to(w_ptr.dtype.element_ty), mask=mask)
        keys, gates, _ = _decayed_keys(key_ptr, g_ptr, beta_ptr, rows, inside, d, head_dim)
        kg = keys * tl.exp(end_gates[None, :] - gates)
        tl.store(kg_ptr + places, kg.to(kg_ptr.dtype.element_ty), mask=mask)
    else:
        e = (tl.program_id(2) - key_blocks) * COLUMNS + tl.arange(0, COLUMNS)
        for tile in range(tl.program_id(1) + 1 if SEVERAL else 1):
            j = tile * TILE + lanes
            others = (begin + j) * num_heads + head
            inverse = _triangle(inverse_ptr, rows * chunk_size, inside, i, j)
            values = _values_times_beta(value_ptr, beta_ptr, others, j < length, e, value_dim)
            acc = tl.dot(inverse, values, acc, input_precision="ieee")
        mask = inside[:, None] & (e < value_dim)[None, :]
        tl.store(u_ptr + rows[:, None] * value_dim + e[None, :], acc.to(u_ptr.dtype.element_ty), mask=mask)


def kda_recompute_wu(key, value, beta, g, inverse, cu_seqlens, chunk_indices, w, u, kg):
    num_heads, head_dim = key.shape[1:]
    value_dim, chunk_size = value.shape[2], inverse.shape[2]
    wide = key.element_size() == 4
    tile = min(32, chunk_size) if wide else chunk_size
    columns = min(32 if wide or tile == 128 else 64, tile)
    key_blocks, value_blocks = triton.cdiv(head_dim, columns), triton.cdiv(value_dim, columns)
    grid = chunk_indices.shape[0] * num_heads, triton.cdiv(chunk_size, tile), key_blocks + value_blocks
    _factors[grid](
        key,
        value,
        beta,
        g,
        inverse,
        cu_seqlens,
        chunk_indices,
        w,
        u,
        kg,
        num_heads,
        head_dim,
        value_dim,
        chunk_size,
        key_blocks,
        TILE=tile,
        COLUMNS=columns,
        SEVERAL=tile < chunk_size,
        num_warps=8,
        # The loops have few steps: buffers for loads ahead would only take room from other programs.
        num_stages=1,
    )
