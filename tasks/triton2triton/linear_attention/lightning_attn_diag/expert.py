"""Attention inside chunks on matrix units, whose decay between tiles is the product of a column's and a row's.

What the baseline wastes, and what is done instead:

- It multiplies scores by values as float32, without matrix units on NVIDIA. Here scores are the sum of two numbers of
  16-bit values' dtype, and both halves run on matrix units, with float32 sums. float32 is multiplied as three TF32
  products on NVIDIA, and as it is on AMD.
- It takes an exponential for every pair of tokens. Here that is so only in the tile on the diagonal. Before it, decay
  from token j to token i of a tile that starts at f is exp(-s * (i - f)) * exp(-s * (f - j)), neither above 1.
- It masks every tile, and has 32 rows. Keys of 192 values are padded to 256. Here those are 128 and 64, only the
  scores on the diagonal have a mask, and 64 rows make wgmma apply.
- Its programs of one chunk are launched far from one another, each reading the same keys and values from memory. Here
  they are neighbours, and find them in the cache.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _load_rows(ptr, rows, stride, FIRST: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    """Columns FIRST … FIRST + WIDTH - 1 of rows of SIZE values; those past the end are zeros."""
    columns = FIRST + tl.arange(0, WIDTH)
    pointers = ptr + rows[:, None] * stride + columns[None, :]
    if FIRST + WIDTH > SIZE:
        return tl.load(pointers, mask=(columns < SIZE)[None, :], other=0.0)
    return tl.load(pointers)


@triton.jit
def _weigh(weights, values, acc):
    """acc + weights @ values to float32 accuracy."""
    high = weights.to(values.dtype)
    acc = tl.dot(high, values, acc, input_precision=PRECISION)
    if values.dtype != tl.float32:
        acc = tl.dot((weights - high.to(tl.float32)).to(values.dtype), values, acc)
    return acc


@triton.jit
def _scores(
    query,
    query_rest,
    key_ptr,
    j,
    STRIDE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    KEY_DIM: tl.constexpr,
    REST: tl.constexpr,
):
    """Products of a tile of queries and one of keys, whose rows are KEY_DIM and REST values long."""
    keys = _load_rows(key_ptr, j, STRIDE, 0, KEY_DIM, HEAD_DIM)
    scores = tl.dot(query, keys.T, input_precision=PRECISION)
    if REST:
        keys = _load_rows(key_ptr, j, STRIDE, KEY_DIM, REST, HEAD_DIM)
        scores = tl.dot(query_rest, keys.T, scores, input_precision=PRECISION)
    return scores


@triton.jit
def _attend_inside_chunk(
    query_ptr,
    key_ptr,
    value_ptr,
    slopes_ptr,
    out_ptr,
    seq_len,
    num_chunks,
    CHUNK: tl.constexpr,
    NUM_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    VALUE_HEAD_DIM: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    KEY_DIM: tl.constexpr,
    REST: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    TILES: tl.constexpr = (CHUNK + ROWS - 1) // ROWS
    # The last tiles have the most keys and start first.
    first = (TILES - 1 - tl.program_id(0) % TILES) * ROWS
    head = tl.program_id(0) // TILES % NUM_HEADS
    chunk = tl.program_id(0) // TILES // NUM_HEADS
    begin = chunk % num_chunks * CHUNK
    length = tl.minimum(seq_len - begin, CHUNK)
    if first >= length:
        return
    origin = ((chunk // num_chunks).to(tl.int64) * seq_len + begin) * NUM_HEADS + head
    query_ptr += origin * HEAD_DIM
    key_ptr += origin * HEAD_DIM
    value_ptr += origin * VALUE_HEAD_DIM
    out_ptr += origin * VALUE_HEAD_DIM
    slope = tl.load(slopes_ptr + head) * LOG2_E
    offsets = tl.arange(0, ROWS)
    i = first + offsets
    STRIDE: tl.constexpr = NUM_HEADS * HEAD_DIM
    VALUE_STRIDE: tl.constexpr = NUM_HEADS * VALUE_HEAD_DIM
    # Past the end, the last token is read again: loads need no mask.
    tokens = tl.minimum(i, length - 1)
    query = _load_rows(query_ptr, tokens, STRIDE, 0, KEY_DIM, HEAD_DIM)
    query_rest = query
    if REST:
        query_rest = _load_rows(query_ptr, tokens, STRIDE, KEY_DIM, REST, HEAD_DIM)
    acc = tl.zeros((ROWS, VALUE_DIM), tl.float32)
    for start in range(0, first, KEYS):
        j = start + tl.arange(0, KEYS)
        scores = _scores(query, query_rest, key_ptr, j, STRIDE, HEAD_DIM, KEY_DIM, REST)
        values = _load_rows(value_ptr, j, VALUE_STRIDE, 0, VALUE_DIM, VALUE_HEAD_DIM)
        acc = _weigh(scores * tl.exp2(slope * (j - first))[None, :], values, acc)
    acc *= tl.exp2(-slope * offsets)[:, None]
    for start in range(first, first + ROWS, KEYS):
        j = start + tl.arange(0, KEYS)
        seen = tl.minimum(j, length - 1)
        scores = _scores(query, query_rest, key_ptr, seen, STRIDE, HEAD_DIM, KEY_DIM, REST)
        values = _load_rows(value_ptr, seen, VALUE_STRIDE, 0, VALUE_DIM, VALUE_HEAD_DIM)
        age = i[:, None] - j[None, :]
        scores = tl.where(age >= 0, scores * tl.exp2(-slope * tl.maximum(age, 0)), 0.0)
        acc = _weigh(scores, values, acc)
    columns = tl.arange(0, VALUE_DIM)
    mask = (i < length)[:, None] & (columns < VALUE_HEAD_DIM)[None, :]
    places = i[:, None] * (NUM_HEADS * VALUE_HEAD_DIM) + columns[None, :]
    tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=mask)


def _split_row(head_dim: int) -> tuple[int, int]:
    """Return two powers of two that hold a row, the second 0 where one alone is no longer than both."""
    whole = max(16, triton.next_power_of_2(head_dim))
    half = whole // 2
    rest = max(16, triton.next_power_of_2(max(1, head_dim - half)))
    return (half, rest) if half >= 32 and half + rest < whole else (whole, 0)


def _shape(chunk_size: int, head_dim: int, value_dim: int, item_bytes: int) -> tuple[int, int, int]:
    """Return queries and keys of a tile, and stages.

    Of long rows, 64 keys and values would not fit into the 64 KiB that a workgroup has on AMD. TF32 products need two
    numbers of each float32: 32 keys and values of 128 take 64 KiB of shared memory, which with a second stage would be
    all of an SM of NVIDIA's for one program, and 32 longer ones more registers than there are. Three stages of 16-bit
    tiles have two in flight. For 64 keys of 256 numbers and values of at most 32, Triton 3.6 makes code for sm_90 that
    reads outside of shared memory, with any number of stages; with 32 keys it does not.
    """
    long = value_dim > 128
    rows = 32 if long else min(64, max(16, triton.next_power_of_2(chunk_size)))
    if item_bytes == 4:
        return rows, min(rows, 16 if long else 32), 1
    keys = 32 if head_dim > 128 and value_dim <= 32 else rows
    return rows, min(rows, keys), 2 if torch.version.hip else 3


def lightning_attn_diag(query, key, value, slopes, chunk_size, out):
    batch, seq_len, num_heads, head_dim = query.shape
    value_dim = value.shape[3]
    num_chunks = triton.cdiv(seq_len, chunk_size)
    dim, rest = _split_row(head_dim)
    rows, keys, stages = _shape(chunk_size, head_dim, value_dim, query.element_size())
    _attend_inside_chunk[(batch * num_chunks * num_heads * triton.cdiv(chunk_size, rows),)](
        query,
        key,
        value,
        slopes,
        out,
        seq_len,
        num_chunks,
        CHUNK=chunk_size,
        NUM_HEADS=num_heads,
        HEAD_DIM=head_dim,
        VALUE_HEAD_DIM=value_dim,
        ROWS=rows,
        KEYS=keys,
        KEY_DIM=dim,
        REST=rest,
        VALUE_DIM=max(16, triton.next_power_of_2(value_dim)),
        num_warps=4,
        num_stages=stages,
    )
