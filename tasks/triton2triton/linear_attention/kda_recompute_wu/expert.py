"""WY factors of a chunk in one launch, with keys and gates of a tile loaded once for w and the decayed keys.

The baseline loads keys and gates of each tile a second time for kg, after the loop that has them for w: 24 of the 56
KiB that a program of 64 × 64 results loads. It also has a launch of its own for u, and multiplies every value by its
beta in registers before the product. Here the tile on the diagonal comes last and outside of the loop, so that kg is
made of what w was; u is a part of the same grid, and beta scales the columns of the inverse, so that values go to
shared memory as they are. Only the tile on the diagonal has a triangular mask. Where a chunk is one tile, there is no
loop, whose buffers take most of the shared memory. Loads are waited for, not products: eight warps have few registers
each, so that more programs fit on a multiprocessor. In float32 three TF32 products would take three times as many.
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
def _scaled_values(value_ptr, beta_ptr, inverse, rows, inside, columns, value_dim):
    """Values as they are, and the inverse with its columns times beta."""
    mask = inside[:, None] & (columns < value_dim)[None, :]
    values = tl.load(value_ptr + rows[:, None] * value_dim + columns[None, :], mask=mask, other=0.0)
    beta = tl.load(beta_ptr + rows, mask=inside, other=0.0).to(tl.float32)
    return values, (inverse.to(tl.float32) * beta[None, :]).to(inverse.dtype)


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
    SEVERAL: tl.constexpr,
):
    """TILE tokens of one chunk and head, and TILE columns: of w and kg in the first blocks, of u in the others."""
    head = tl.program_id(0) % num_heads
    begin, length = _chunk_bounds(cu_seqlens_ptr, chunk_indices_ptr, tl.program_id(0) // num_heads, chunk_size)
    lanes = tl.arange(0, TILE)
    i = tl.program_id(1) * TILE + lanes
    if tl.program_id(1) * TILE >= length:
        return
    inside = i < length
    rows = (begin + i) * num_heads + head
    inverse_rows = inverse_ptr + rows[:, None] * chunk_size
    triangle = inside[:, None] & (lanes[None, :] <= lanes[:, None])
    acc = tl.zeros((TILE, TILE), tl.float32)
    if tl.program_id(2) < key_blocks:
        d = tl.program_id(2) * TILE + lanes
        for tile in range(tl.program_id(1) if SEVERAL else 0):
            j = tile * TILE + lanes
            others = (begin + j) * num_heads + head
            inverse = tl.load(inverse_rows + j[None, :], mask=inside[:, None], other=0.0)
            _, _, decayed = _decayed_keys(key_ptr, g_ptr, beta_ptr, others, j < length, d, head_dim)
            acc = tl.dot(inverse, decayed.to(inverse.dtype), acc, input_precision="ieee")
        inverse = tl.load(inverse_rows + i[None, :], mask=triangle, other=0.0)
        keys, gates, decayed = _decayed_keys(key_ptr, g_ptr, beta_ptr, rows, inside, d, head_dim)
        acc = tl.dot(inverse, decayed.to(inverse.dtype), acc, input_precision="ieee")
        last = (begin + length - 1) * num_heads + head
        end_gates = tl.load(g_ptr + last * head_dim + d, mask=d < head_dim, other=0.0)
        mask = inside[:, None] & (d < head_dim)[None, :]
        places = rows[:, None] * head_dim + d[None, :]
        tl.store(w_ptr + places, acc.to(w_ptr.dtype.element_ty), mask=mask)
        kg = keys * tl.exp(end_gates[None, :] - gates)
        tl.store(kg_ptr + places, kg.to(kg_ptr.dtype.element_ty), mask=mask)
    else:
        e = (tl.program_id(2) - key_blocks) * TILE + lanes
        for tile in range(tl.program_id(1) if SEVERAL else 0):
            j = tile * TILE + lanes
            others = (begin + j) * num_heads + head
            inverse = tl.load(inverse_rows + j[None, :], mask=inside[:, None], other=0.0)
            values, inverse = _scaled_values(value_ptr, beta_ptr, inverse, others, j < length, e, value_dim)
            acc = tl.dot(inverse, values, acc, input_precision="ieee")
        inverse = tl.load(inverse_rows + i[None, :], mask=triangle, other=0.0)
        values, inverse = _scaled_values(value_ptr, beta_ptr, inverse, rows, inside, e, value_dim)
        acc = tl.dot(inverse, values, acc, input_precision="ieee")
        mask = inside[:, None] & (e < value_dim)[None, :]
        tl.store(u_ptr + rows[:, None] * value_dim + e[None, :], acc.to(u_ptr.dtype.element_ty), mask=mask)


def kda_recompute_wu(key, value, beta, g, inverse, cu_seqlens, chunk_indices, w, u, kg):
    num_heads, head_dim = key.shape[1:]
    value_dim, chunk_size = value.shape[2], inverse.shape[2]
    tile = min(32 if key.element_size() == 4 else 64, chunk_size)
    key_blocks, value_blocks = triton.cdiv(head_dim, tile), triton.cdiv(value_dim, tile)
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
        SEVERAL=tile < chunk_size,
        num_warps=8,
    )
