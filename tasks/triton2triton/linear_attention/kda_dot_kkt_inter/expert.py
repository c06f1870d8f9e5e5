"""Products with all earlier sub-blocks at once, on matrix units.

The decayed side of the rows is made once for 64 columns, and no program runs for the first sub-block of a chunk, which
has none. Columns are the rows of the products, and rows their columns: a sub-block has 16 or 32 rows, too few for
wgmma, whose left side comes from registers, where decay leaves the keys.

With 16-bit inputs, a decayed vector is the sum of its rounding to bfloat16 and of the rounded rest: three fast products
of such halves keep 16 bits, which the float32 result needs. float32 is multiplied as three TF32 products on NVIDIA.
The length of a row is a constant, so that rows of a multiple of 8 values are read in whole vectors.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _halves_product(a, b, acc):
    """acc + a @ b for float32 blocks, but for the product of the two low halves."""
    a_high = a.to(tl.bfloat16)
    b_high = b.to(tl.bfloat16)
    a_low = (a - a_high.to(tl.float32)).to(tl.bfloat16)
    b_low = (b - b_high.to(tl.float32)).to(tl.bfloat16)
    acc = tl.dot(a_low, b_high, acc)
    acc = tl.dot(a_high, b_low, acc)
    return tl.dot(a_high, b_high, acc)


@triton.jit
def _load_channels(rows, channels, HEAD_DIM: tl.constexpr, KEYS: tl.constexpr):
    """KEYS channels of rows of HEAD_DIM values; those past the end are zeros."""
    if HEAD_DIM % KEYS != 0:
        return tl.load(rows + channels, mask=channels < HEAD_DIM, other=0.0)
    return tl.load(rows + channels)


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
    later,
    HEAD_DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEYS: tl.constexpr,
    HALVES: tl.constexpr,
):
    """One sub-block of rows, COLUMNS columns at a time."""
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
        kk = tl.zeros((COLUMNS, ROWS), tl.float32)
        qk = tl.zeros((COLUMNS, ROWS), tl.float32)
        for start in range(0, HEAD_DIM, KEYS):
            d = start + tl.arange(0, KEYS)
            at = _load_channels(g_ptr + base, d[None, :], HEAD_DIM, KEYS)
            place = (rows * HEAD_DIM)[:, None]
            after = tl.exp(_load_channels(g_ptr + place, d[None, :], HEAD_DIM, KEYS) - at)
            row_keys = _load_channels(key_ptr + place, d[None, :], HEAD_DIM, KEYS).to(tl.float32) * after
            row_queries = _load_channels(query_ptr + place, d[None, :], HEAD_DIM, KEYS).to(tl.float32) * after
            place = (columns * HEAD_DIM)[:, None]
            before = tl.exp(at - _load_channels(g_ptr + place, d[None, :], HEAD_DIM, KEYS))
            keys = _load_channels(key_ptr + place, d[None, :], HEAD_DIM, KEYS).to(tl.float32) * before
            if HALVES:
                kk = _halves_product(keys, row_keys.T, kk)
                qk = _halves_product(keys, row_queries.T, qk)
            else:
                kk = tl.dot(keys, row_keys.T, kk, input_precision=PRECISION)
                qk = tl.dot(keys, row_queries.T, qk, input_precision=PRECISION)
        out = rows[:, None] * CHUNK + c[None, :]
        mask = row_mask[:, None] & (c < block * sub_block)[None, :]
        tl.store(kk_ptr + out, kk.T * beta[:, None], mask=mask)
        tl.store(qk_ptr + out, (qk.T * sm_scale).to(qk_ptr.dtype.element_ty), mask=mask)


def kda_dot_kkt_inter(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    num_heads, head_dim = key.shape[1:]
    chunk_size = kk.shape[2]
    later = chunk_size // sub_block - 1
    if later == 0:
        return
    halves = key.element_size() == 2  # without them, 32 channels take more than half of the registers
    _products[(chunk_indices.shape[0] * num_heads * later,)](
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
        later,
        HEAD_DIM=head_dim,
        CHUNK=chunk_size,
        ROWS=max(16, triton.next_power_of_2(sub_block)),
        COLUMNS=64,
        KEYS=32 if halves else 16,
        HALVES=halves,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
