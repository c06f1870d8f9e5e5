"""LoRA expand with tiles of 32 tokens that start from what is in out, or a token a program in a short batch.

The baseline's tiles have 16 tokens, and wait for out when their products are done. In prefill the tokens of a tile
mostly share an adapter: a tile of 32 reads its weight half as often. out is read first, and is under way together with
the adapters' weight. In a short batch each token may have an adapter of its own, and a tile of 16 waits for 16 weights,
one after the other. There a program has one token, and sums over the rank for up to 512 columns.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
SHORT_BATCH = 1024
WEIGHT_ELEMENTS = 8192
ROW_ELEMENTS = 16384
TOKENS = 32


@triton.jit
def _expand_token(
    x_ptr,
    weight_ptr,
    token_lora_ids_ptr,
    slice_offsets_ptr,
    out_ptr,
    num_tokens,
    out_features,
    rank,
    COLUMNS: tl.constexpr,
    RANK: tl.constexpr,
):
    """One token: the weight's rows of one adapter times one vector."""
    token = tl.program_id(0).to(tl.int64)
    layer = tl.program_id(1)
    first_column = tl.load(slice_offsets_ptr + layer) + tl.program_id(2) * COLUMNS
    end = tl.load(slice_offsets_ptr + layer + 1)
    adapter = tl.load(token_lora_ids_ptr + token).to(tl.int64)
    if (adapter >= 0) & (first_column < end):
        columns = first_column + tl.arange(0, COLUMNS)
        ranks = tl.arange(0, RANK)
        inside = columns < end
        x = tl.load(x_ptr + (layer * num_tokens + token) * rank + ranks, mask=ranks < rank, other=0.0).to(tl.float32)
        weight_mask = inside[:, None] & (ranks < rank)[None, :]
        weight_rows = weight_ptr + (adapter * out_features + columns)[:, None] * rank
        weight = tl.load(weight_rows + ranks[None, :], mask=weight_mask, other=0.0)
        places = out_ptr + token * out_features + columns
        before = tl.load(places, mask=inside, other=0.0).to(tl.float32)
        result = before + tl.sum(weight.to(tl.float32) * x[None, :], axis=1)
        tl.store(places, result.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _expand_tile(
    x_ptr,
    weight_ptr,
    token_lora_ids_ptr,
    slice_offsets_ptr,
    out_ptr,
    num_tokens,
    out_features,
    rank,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    RANK: tl.constexpr,
):
    layer = tl.program_id(1)
    first_column = tl.load(slice_offsets_ptr + layer) + tl.program_id(2) * COLUMNS
    end = tl.load(slice_offsets_ptr + layer + 1)
    if first_column < end:
        tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
        adapters = tl.load(token_lora_ids_ptr + tokens, mask=tokens < num_tokens, other=-1)
        columns = first_column + tl.arange(0, COLUMNS)
        ranks = tl.arange(0, RANK)
        x_rows = x_ptr + (layer * num_tokens + tokens).to(tl.int64)[:, None] * rank
        x_mask = (adapters >= 0)[:, None] & (ranks < rank)[None, :]
        x = tl.load(x_rows + ranks[None, :], mask=x_mask, other=0.0).to(weight_ptr.dtype.element_ty)
        weight_mask = (columns < end)[None, :] & (ranks < rank)[:, None]
        places = out_ptr + tokens.to(tl.int64)[:, None] * out_features + columns[None, :]
        inside = (adapters >= 0)[:, None] & (columns < end)[None, :]
        acc = tl.load(places, mask=inside, other=0.0).to(tl.float32)
        adapter = tl.max(adapters, axis=0)
        while adapter >= 0:
            rows = adapter.to(tl.int64) * out_features + columns
            weight = tl.load(weight_ptr + rows[None, :] * rank + ranks[:, None], mask=weight_mask, other=0.0)
            own = tl.where((adapters == adapter)[:, None], x, 0.0)
            acc = tl.dot(own, weight, acc, input_precision=PRECISION)
            adapter = tl.max(tl.where(adapters < adapter, adapters, -1), axis=0)
        tl.store(places, acc.to(out_ptr.dtype.element_ty), mask=inside)


def lora_expand(x, weight, token_lora_ids, slice_offsets, out):
    num_slices, num_tokens, rank = x.shape
    out_features = out.shape[1]
    lanes = triton.next_power_of_2(rank)
    arguments = x, weight, token_lora_ids, slice_offsets, out, num_tokens, out_features, rank
    # A slice may have nearly all columns; programs past the end of theirs return at once.
    if num_tokens <= SHORT_BATCH:
        columns = max(16, min(512, ROW_ELEMENTS // lanes))
        grid = num_tokens, num_slices, triton.cdiv(out_features, columns)
        _expand_token[grid](*arguments, COLUMNS=columns, RANK=lanes, num_warps=8)
    else:
        lanes = max(16, lanes)
        columns = max(16, min(128, WEIGHT_ELEMENTS // lanes))
        grid = triton.cdiv(num_tokens, TOKENS), num_slices, triton.cdiv(out_features, columns)
        _expand_tile[grid](*arguments, TOKENS=TOKENS, COLUMNS=columns, RANK=lanes)
