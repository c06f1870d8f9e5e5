"""Window scores: the one tile of one head of one window per program."""

import triton
import triton.language as tl


@triton.jit
def scores_of_window(
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
    head = tl.program_id(0) % num_heads
    tokens = tl.arange(0, TOKENS)
    dims = tl.arange(0, DIM)
    rows = (place * seq_len + tokens[:, None]) * row_stride + dims[None, :]
    row_mask = (tokens < seq_len)[:, None] & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + rows, mask=row_mask, other=0.0)
    key = tl.load(key_ptr + rows, mask=row_mask, other=0.0)
    pairs = tokens[:, None] * seq_len + tokens[None, :]
    pair_mask = (tokens < seq_len)[:, None] & (tokens < seq_len)[None, :]
    bias = tl.load(bias_ptr + head * seq_len * seq_len + pairs, mask=pair_mask, other=0.0).to(tl.float32)
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * sm_scale + bias
    tl.store(out_ptr + place * seq_len * seq_len + pairs, scores.to(out_ptr.dtype.element_ty), mask=pair_mask)


def single_tile_gemm(query, key, bias, sm_scale, out):
    num_windows, num_heads, seq_len, head_dim = query.shape
    tokens, dim = (max(16, triton.next_power_of_2(size)) for size in (seq_len, head_dim))
    scores_of_window[(num_windows * num_heads,)](
        query, key, bias, out, sm_scale, query.stride(2), num_heads, seq_len, head_dim, TOKENS=tokens, DIM=dim
    )
