"""Products inside sub-blocks as batched matrix products, with two exponentials a value in place of one a pair.

What the baseline wastes, and what is done instead:

- It takes an exponential for every row, column and channel: 16 a value in sub-blocks of 16. Gates fall by 60 at most,
  so exp(g_i - g_j) is exp(g_i - g_f) * exp(g_f - g_j) for the first token f of the sub-block, both within the range of
  float32 and of bfloat16: two a value. Pairs that do not count may be large, but are finite and replaced by 0.
- It reads one column at a time, each after the other, and stores columns of single values a row apart. Here each value
  is read once, and rows of a sub-block are stored as a whole.
- It sums on vector units. Here matrix units do: a factor is the sum of two numbers of bfloat16, or of three where
  inputs are float32, and of their products those are left out that a float32 sum would hardly show.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _cut(values):
    """The upper half of each float32, which is a number of bfloat16, and what is left of it."""
    bits = values.to(tl.uint32, bitcast=True)
    upper = (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return upper, values - (bits & 0xFFFF0000).to(tl.float32, bitcast=True)


@triton.jit
def _product(a, b, acc, EXACT: tl.constexpr):
    """acc + a @ b of float32 batches: to 16 bits of every product, or with EXACT to all of them."""
    a_high, a_rest = _cut(a)
    b_high, b_rest = _cut(b)
    if EXACT:
        a_low, a_rest = _cut(a_rest)
        b_low, b_rest = _cut(b_rest)
        acc = tl.dot(a_rest.to(tl.bfloat16), b_high, acc)
        acc = tl.dot(a_high, b_rest.to(tl.bfloat16), acc)
        acc = tl.dot(a_low, b_low, acc)
    else:
        a_low = a_rest.to(tl.bfloat16)
        b_low = b_rest.to(tl.bfloat16)
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
def _products_inside(
    query_ptr,
    key_ptr,
    beta_ptr,
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    kk_ptr,
    qk_ptr,
    sm_scale,
    NUM_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    SUB_BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    """BLOCKS neighbouring sub-blocks of one chunk and head."""
    PIECES: tl.constexpr = CHUNK // (SUB_BLOCK * BLOCKS)
    head = tl.program_id(0) % NUM_HEADS
    piece = tl.program_id(0) // NUM_HEADS % PIECES
    chunk = tl.program_id(0) // NUM_HEADS // PIECES
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * CHUNK
    length = tl.load(cu_seqlens_ptr + seq + 1) - begin
    left = piece * (SUB_BLOCK * BLOCKS)
    if left >= length:
        return

    base = begin.to(tl.int64) * NUM_HEADS + head
    query_ptr += base * HEAD_DIM
    key_ptr += base * HEAD_DIM
    g_ptr += base * HEAD_DIM
    lane = tl.arange(0, ROWS)
    first = (left + tl.arange(0, BLOCKS) * SUB_BLOCK)[:, None, None]
    i = first + lane[None, :, None]
    inside = (lane < SUB_BLOCK)[None, :, None] & (i < length)
    # Past the end of a sub-block or the sequence, the last token is read again: loads need no mask.
    tokens = tl.minimum(first + tl.minimum(lane, SUB_BLOCK - 1)[None, :, None], length - 1)
    firsts = tl.minimum(first, length - 1)
    kk = tl.zeros((BLOCKS, ROWS, ROWS), tl.float32)
    qk = tl.zeros((BLOCKS, ROWS, ROWS), tl.float32)
    for start in range(0, HEAD_DIM, KEYS):
        d = (start + tl.arange(0, KEYS))[None, None, :]
        origin = _load_channels(g_ptr + firsts * (NUM_HEADS * HEAD_DIM), d, HEAD_DIM, KEYS)
        keys = _load_channels(key_ptr + tokens * (NUM_HEADS * HEAD_DIM), d, HEAD_DIM, KEYS).to(tl.float32)
        queries = _load_channels(query_ptr + tokens * (NUM_HEADS * HEAD_DIM), d, HEAD_DIM, KEYS).to(tl.float32)
        fall = _load_channels(g_ptr + tokens * (NUM_HEADS * HEAD_DIM), d, HEAD_DIM, KEYS) - origin
        after = tl.exp(fall)
        columns = tl.permute(keys * tl.exp(-fall), (0, 2, 1))
        kk = _product(keys * after, columns, kk, query_ptr.dtype.element_ty == tl.float32)
        qk = _product(queries * after, columns, qk, query_ptr.dtype.element_ty == tl.float32)

    beta = tl.load(beta_ptr + base + i * NUM_HEADS, mask=inside, other=0.0).to(tl.float32)
    earlier = lane[None, :, None] - lane[None, None, :]
    kk = tl.where(earlier > 0, kk * beta, 0.0)
    qk = tl.where(earlier >= 0, qk * sm_scale, 0.0)
    out = base * CHUNK + i * (NUM_HEADS * CHUNK) + first + lane[None, None, :]
    mask = inside & (lane < SUB_BLOCK)[None, None, :]
    tl.store(kk_ptr + out, kk, mask=mask)
    tl.store(qk_ptr + out, qk.to(qk_ptr.dtype.element_ty), mask=mask)


def kda_dot_kkt_intra(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    num_heads, head_dim = key.shape[1:]
    chunk_size = kk.shape[2]
    # 64 rows a program, and a warp for each sub-block of 16 or 32: batches are what warps share.
    rows = max(16, sub_block)
    blocks = min(chunk_size // sub_block, 64 // rows)
    pieces = chunk_size // (sub_block * blocks)
    _products_inside[(chunk_indices.shape[0] * pieces * num_heads,)](
        query,
        key,
        beta,
        g,
        cu_seqlens,
        chunk_indices,
        kk,
        qk,
        sm_scale,
        NUM_HEADS=num_heads,
        HEAD_DIM=head_dim,
        CHUNK=chunk_size,
        SUB_BLOCK=sub_block,
        BLOCKS=blocks,
        ROWS=rows,
        # As many channels at a time as registers hold; three parts of a factor take half as many again.
        KEYS=16 if key.element_size() == 4 else 32,
        num_warps=4 if rows == 64 else blocks,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
