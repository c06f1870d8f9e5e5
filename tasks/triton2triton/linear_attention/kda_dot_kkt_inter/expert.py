"""Products of whole tiles of 64 tokens where inputs have 16 bits, else of sub-blocks of rows.

With 16 bits, the exponent of a product is split at the token in the middle of the chunk: g[t] - g[m] and g[m] - g[c].
Either may be above 0, and neither exponential overflows, since decays of a chunk stay above -60. All products of a tile
are then one matrix product, and keys, queries and gates are loaded and decayed once. The baseline loads and decays its
rows again for each earlier sub-block. Results of pairs that are not asked for are dropped.

The range of the decayed vectors needs the exponents of float32. bfloat16 inputs are multiplied as TF32 on NVIDIA.
float16, or both on AMD, are the sum of two bfloat16, and their product is three.

float32 takes three TF32 products on NVIDIA, which cost more than what they multiply: there are none that are dropped.
Rows of a sub-block are decayed once for 64 columns. Keys and queries are one left operand, since a sub-block has too
few rows for two.

bfloat16 is multiplied like that on NVIDIA where a chunk has two sub-blocks: three quarters of a tile's products would
be dropped, and of the first sub-block neither queries nor decayed rows are needed.
"""

import torch
import triton
import triton.language as tl

PRECISION = "ieee" if torch.version.hip else "tf32x3"  # of float32: both use matrix units


@triton.jit
def _multiply(a, b, acc, TF32: tl.constexpr):
    """acc + a @ b.T for float32 blocks. Sums of two bfloat16 leave out the product of the two lower ones."""
    if TF32:
        return tl.dot(a, b.T, acc, input_precision="tf32")
    a_high = a.to(tl.bfloat16)
    b_high = b.to(tl.bfloat16)
    a_low = (a - a_high.to(tl.float32)).to(tl.bfloat16)
    b_low = (b - b_high.to(tl.float32)).to(tl.bfloat16)
    acc = tl.dot(a_low, b_high.T, acc)
    acc = tl.dot(a_high, b_low.T, acc)
    return tl.dot(a_high, b_high.T, acc)


@triton.jit
def _load_channels(row_ptrs, channels, HEAD_DIM: tl.constexpr, KEYS: tl.constexpr):
    """KEYS channels of rows of HEAD_DIM values; those past the end are zeros."""
    if HEAD_DIM % KEYS != 0:
        return tl.load(row_ptrs + channels, mask=channels < HEAD_DIM, other=0.0)
    return tl.load(row_ptrs + channels)


@triton.jit
def _tile_products(
    query_ptr,
    key_ptr,
    g_ptr,
    rows,
    columns,
    middle,
    HEAD_DIM: tl.constexpr,
    TILE: tl.constexpr,
    KEYS: tl.constexpr,
    TF32: tl.constexpr,
    DIAGONAL: tl.constexpr,
):
    """Products of the keys and queries of TILE rows with the keys of TILE columns. On the diagonal both are the same.

    rows, columns, middle: where the vectors of these tokens begin. Decayed columns are the left operand of both
    products, which wgmma takes from registers: rows would take twice as many.
    """
    kk = tl.zeros((TILE, TILE), tl.float32)
    qk = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, HEAD_DIM, KEYS):
        d = (start + tl.arange(0, KEYS))[None, :]
        at = _load_channels(g_ptr + middle, d, HEAD_DIM, KEYS)
        gates = _load_channels(g_ptr + rows[:, None], d, HEAD_DIM, KEYS) - at
        keys = _load_channels(key_ptr + rows[:, None], d, HEAD_DIM, KEYS).to(tl.float32)
        queries = _load_channels(query_ptr + rows[:, None], d, HEAD_DIM, KEYS).to(tl.float32)
        after = tl.exp(gates)
        if DIAGONAL:
            earlier = keys * tl.exp(-gates)
        else:
            before = tl.exp(at - _load_channels(g_ptr + columns[:, None], d, HEAD_DIM, KEYS))
            earlier = _load_channels(key_ptr + columns[:, None], d, HEAD_DIM, KEYS).to(tl.float32) * before
        kk = _multiply(earlier, keys * after, kk, TF32)
        qk = _multiply(earlier, queries * after, qk, TF32)
    return kk.T, qk.T


@triton.jit
def _store_products(kk_ptr, qk_ptr, kk, qk, beta, sm_scale, rows, i, c, inside, sub_block, CHUNK: tl.constexpr):
    """Store the products with tokens of earlier sub-blocks."""
    mask = inside[:, None] & ((c // sub_block)[None, :] < (i // sub_block)[:, None])
    out = rows[:, None] * CHUNK + c[None, :]
    tl.store(kk_ptr + out, kk * beta[:, None], mask=mask)
    tl.store(qk_ptr + out, (qk * sm_scale).to(qk_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _products(
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
    HEAD_DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    TILE: tl.constexpr,
    KEYS: tl.constexpr,
    TF32: tl.constexpr,
):
    """TILE rows of one chunk and head, with TILE columns after the other up to the diagonal."""
    tile = tl.program_id(0) % (CHUNK // TILE)
    index = tl.program_id(0) // (CHUNK // TILE)
    head = index % num_heads
    chunk = index // num_heads
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * CHUNK
    end = tl.load(cu_seqlens_ptr + seq + 1)
    i = tile * TILE + tl.arange(0, TILE)
    if begin + tile * TILE >= end:
        return
    inside = begin + i < end
    # Past the end of a sequence, its last token is read again: loads need no mask.
    rows = tl.minimum(begin + i, end - 1).to(tl.int64) * num_heads + head
    middle = (tl.minimum(begin + CHUNK // 2, end - 1).to(tl.int64) * num_heads + head) * HEAD_DIM
    beta = tl.load(beta_ptr + rows).to(tl.float32)
    starts = rows * HEAD_DIM
    for left in range(tile if TILE < CHUNK else 0):
        c = left * TILE + tl.arange(0, TILE)
        columns = ((begin + c).to(tl.int64) * num_heads + head) * HEAD_DIM
        kk, qk = _tile_products(query_ptr, key_ptr, g_ptr, starts, columns, middle, HEAD_DIM, TILE, KEYS, TF32, False)
        _store_products(kk_ptr, qk_ptr, kk, qk, beta, sm_scale, rows, i, c, inside, sub_block, CHUNK)
    kk, qk = _tile_products(query_ptr, key_ptr, g_ptr, starts, starts, middle, HEAD_DIM, TILE, KEYS, TF32, True)
    _store_products(kk_ptr, qk_ptr, kk, qk, beta, sm_scale, rows, i, i, inside, sub_block, CHUNK)


@triton.jit
def _sub_block_products(
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
    later,
    HEAD_DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEYS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One sub-block of rows, COLUMNS columns at a time. No program has the first sub-block of a chunk."""
    block = tl.program_id(0) % later + 1
    index = tl.program_id(0) // later
    head = index % num_heads
    chunk = index // num_heads
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * CHUNK
    end = tl.load(cu_seqlens_ptr + seq + 1)
    first = begin + block * sub_block
    if first >= end:
        return
    lane = tl.arange(0, ROWS)
    row_mask = (lane < sub_block) & (first + lane < end)
    # Past the end of a block or the sequence, the last token is read again: loads need no mask.
    rows = tl.minimum(first + tl.minimum(lane, sub_block - 1), end - 1).to(tl.int64) * num_heads + head
    base = (first.to(tl.int64) * num_heads + head) * HEAD_DIM
    beta = tl.load(beta_ptr + rows, mask=row_mask, other=0.0).to(tl.float32)
    for left in range(0, block * sub_block, COLUMNS):
        c = left + tl.arange(0, COLUMNS)
        columns = (begin + tl.minimum(c, block * sub_block - 1)).to(tl.int64) * num_heads + head
        acc = tl.zeros((2 * ROWS, COLUMNS), tl.float32)
        for start in range(0, HEAD_DIM, KEYS):
            d = start + tl.arange(0, KEYS)
            at = _load_channels(g_ptr + base, d[None, :], HEAD_DIM, KEYS)
            place = (rows * HEAD_DIM)[:, None]
            after = tl.exp(_load_channels(g_ptr + place, d[None, :], HEAD_DIM, KEYS) - at)
            row_keys = _load_channels(key_ptr + place, d[None, :], HEAD_DIM, KEYS) * after
            row_queries = _load_channels(query_ptr + place, d[None, :], HEAD_DIM, KEYS) * after
            place = (columns * HEAD_DIM)[:, None]
            before = tl.exp(at - _load_channels(g_ptr + place, d[None, :], HEAD_DIM, KEYS))
            keys = _load_channels(key_ptr + place, d[None, :], HEAD_DIM, KEYS) * before
            # Keys above queries: both products are one of twice as many rows.
            both = tl.reshape(tl.permute(tl.join(row_keys, row_queries), (2, 0, 1)), (2 * ROWS, KEYS))
            acc = tl.dot(both, keys.T, acc, input_precision=PRECISION)
        kk, qk = tl.split(tl.permute(tl.reshape(acc, (2, ROWS, COLUMNS)), (1, 2, 0)))
        out = rows[:, None] * CHUNK + c[None, :]
        mask = row_mask[:, None] & (c < block * sub_block)[None, :]
        tl.store(kk_ptr + out, kk * beta[:, None], mask=mask)
        tl.store(qk_ptr + out, (qk * sm_scale).to(qk_ptr.dtype.element_ty), mask=mask)


def kda_dot_kkt_inter(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    num_heads, head_dim = key.shape[1:]
    chunk_size = kk.shape[2]
    if chunk_size == sub_block:
        return
    tensors = (query, key, beta, g, cu_seqlens, chunk_indices, kk, qk)
    heads = chunk_indices.shape[0] * num_heads
    single = key.dtype == torch.float32
    if single or (key.dtype == torch.bfloat16 and chunk_size == 2 * sub_block and not torch.version.hip):
        later = chunk_size // sub_block - 1
        _sub_block_products[(heads * later,)](
            *tensors,
            sub_block,
            sm_scale,
            num_heads,
            later,
            HEAD_DIM=head_dim,
            CHUNK=chunk_size,
            ROWS=max(16, sub_block),
            COLUMNS=64 if single else max(16, sub_block),
            KEYS=16 if single else 32,  # of float32, 32 channels take more than half of the registers
            PRECISION=PRECISION if single else "tf32",
            num_warps=4,
            # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
            num_stages=2 if torch.version.hip else 3,
        )
        return
    tile = min(64, chunk_size)
    _products[(heads * (chunk_size // tile),)](
        *tensors,
        sub_block,
        sm_scale,
        num_heads,
        HEAD_DIM=head_dim,
        CHUNK=chunk_size,
        TILE=tile,
        KEYS=max(16, min(32, triton.next_power_of_2(head_dim))),
        TF32=key.dtype == torch.bfloat16 and not torch.version.hip,
        num_warps=4,
        num_stages=3,
    )
