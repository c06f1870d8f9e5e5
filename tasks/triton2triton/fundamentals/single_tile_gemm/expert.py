"""Window scores where rows of scores are no whole vectors: several windows of one head, one after the other.

The baseline has a program for each tile, which loads query, key and bias, waits, multiplies and ends. With 49 tokens
the bias costs as many loads of one number as there are scores to store, and the registers that their addresses take
leave an H200's multiprocessor 16 warps, all of which wait. Here a program has up to eight windows of one head. It keeps
the bias in registers, and the next windows are on their way to shared memory while one is multiplied and stored. Eight
warps a tile, of at most 80 registers a thread, leave the multiprocessor 24 warps; 128 registers, of float32, leave 16.
Rows past the end repeat the last one in place of masks.

Rows of whole vectors take a fraction of these loads, and the baseline is near the memory's rate there: such 16-bit
tiles keep one program each. The baseline multiplies float32 without matrix units on NVIDIA; here it is three products
of TF32.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
MOST_TOGETHER = 8
ENOUGH_PROGRAMS = 2048


@triton.jit
def _store_scores(
    query_ptr,
    key_ptr,
    out_ptr,
    bias,
    place,
    offsets,
    inside,
    pairs,
    pair_mask,
    window_stride,
    window_scores,
    sm_scale,
    WHOLE_ROWS: tl.constexpr,
):
    """Compute and store the scores of one head of one window."""
    rows = place * window_stride + offsets
    if WHOLE_ROWS:
        query = tl.load(query_ptr + rows)
        key = tl.load(key_ptr + rows)
    else:
        query = tl.load(query_ptr + rows, mask=inside, other=0.0)
        key = tl.load(key_ptr + rows, mask=inside, other=0.0)
    scores = tl.dot(query, key.T, input_precision=PRECISION) * sm_scale + bias
    tl.store(out_ptr + place * window_scores + pairs, scores.to(out_ptr.dtype.element_ty), mask=pair_mask)


@triton.jit
def _scores_of_windows(
    query_ptr,
    key_ptr,
    bias_ptr,
    out_ptr,
    sm_scale,
    row_stride,
    num_windows,
    num_heads,
    seq_len,
    head_dim,
    WHOLE_ROWS: tl.constexpr,
    TOGETHER: tl.constexpr,
    TOKENS: tl.constexpr,
    DIM: tl.constexpr,
):
    head = tl.program_id(0) % num_heads
    first = tl.program_id(0) // num_heads * TOGETHER
    tokens = tl.arange(0, TOKENS)
    dims = tl.arange(0, DIM)
    offsets = tl.minimum(tokens, seq_len - 1)[:, None] * row_stride + dims[None, :]
    inside = (dims < head_dim)[None, :]
    pairs = tokens[:, None] * seq_len + tokens[None, :]
    pair_mask = (tokens < seq_len)[:, None] & (tokens < seq_len)[None, :]
    bias = tl.load(bias_ptr + head * seq_len * seq_len + pairs, mask=pair_mask, other=0.0).to(tl.float32)
    window_stride = seq_len * row_stride
    for window in range(first, tl.minimum(first + TOGETHER, num_windows)):
        _store_scores(
            query_ptr,
            key_ptr,
            out_ptr,
            bias,
            tl.cast(window, tl.int64) * num_heads + head,
            offsets,
            inside,
            pairs,
            pair_mask,
            window_stride,
            seq_len * seq_len,
            sm_scale,
            WHOLE_ROWS,
        )


@triton.jit
def _scores_of_window(
    query_ptr,
    key_ptr,
    bias_ptr,
    out_ptr,
    sm_scale,
    row_stride,
    num_heads,
    seq_len,
    head_dim,
    TOKENS: tl.constexpr,
    DIM: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    tokens = tl.arange(0, TOKENS)
    dims = tl.arange(0, DIM)
    rows = (place * seq_len + tokens[:, None]) * row_stride + dims[None, :]
    row_mask = (tokens < seq_len)[:, None] & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + rows, mask=row_mask, other=0.0)
    key = tl.load(key_ptr + rows, mask=row_mask, other=0.0)
    pairs = tokens[:, None] * seq_len + tokens[None, :]
    pair_mask = (tokens < seq_len)[:, None] & (tokens < seq_len)[None, :]
    bias = tl.load(bias_ptr + place % num_heads * seq_len * seq_len + pairs, mask=pair_mask, other=0.0).to(tl.float32)
    scores = tl.dot(query, key.T, input_precision=PRECISION) * sm_scale + bias
    tl.store(out_ptr + place * seq_len * seq_len + pairs, scores.to(out_ptr.dtype.element_ty), mask=pair_mask)


def single_tile_gemm(query, key, bias, sm_scale, out):
    num_windows, num_heads, seq_len, head_dim = query.shape
    tokens, dim = (max(16, triton.next_power_of_2(size)) for size in (seq_len, head_dim))
    sizes = (num_heads, seq_len, head_dim)
    if seq_len % 16 == 0:
        grid = (num_windows * num_heads,)
        _scores_of_window[grid](query, key, bias, out, sm_scale, query.stride(2), *sizes, TOKENS=tokens, DIM=dim)
        return
    num_warps = 4 if tokens < 64 or torch.version.hip else 8
    registers = {}
    if num_warps == 8 and dim <= 32:
        # So that three programs fit on an H200's multiprocessor, or two of float32.
        registers = {"maxnreg": 80 if query.element_size() == 2 else 128}
    together = max(1, min(MOST_TOGETHER, num_windows * num_heads // ENOUGH_PROGRAMS))
    _scores_of_windows[(triton.cdiv(num_windows, together) * num_heads,)](
        query,
        key,
        bias,
        out,
        sm_scale,
        query.stride(2),
        num_windows,
        *sizes,
        WHOLE_ROWS=head_dim == dim,
        TOGETHER=together,
        TOKENS=tokens,
        DIM=dim,
        num_warps=num_warps,
        num_stages=2 if torch.version.hip else 3,
        **registers,
    )
