"""Products of a sub-block of rows with earlier columns, 64 of float32 or a sub-block of 16 bits at a time.

Rows of a sub-block are decayed once for these, where the baseline loads and decays them again for each earlier
sub-block. Keys and queries are one left operand, since a sub-block has too few rows for two.

The exponent is split at the first token of the rows' sub-block, so that neither factor is above 1, however fast a
channel decays. The range of the decayed vectors needs the exponents of float32: 16-bit inputs are multiplied as TF32
on NVIDIA, float16 as three such products.
"""

import torch
import triton
import triton.language as tl

PRECISION = "ieee" if torch.version.hip else "tf32x3"  # of float32: both use matrix units


@triton.jit
def _load_channels(row_ptrs, channels, HEAD_DIM: tl.constexpr, KEYS: tl.constexpr):
    """KEYS channels of rows of HEAD_DIM values; those past the end are zeros."""
    if HEAD_DIM % KEYS != 0:
        return tl.load(row_ptrs + channels, mask=channels < HEAD_DIM, other=0.0)
    return tl.load(row_ptrs + channels)


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
        PRECISION="tf32" if key.dtype == torch.bfloat16 and not torch.version.hip else PRECISION,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
