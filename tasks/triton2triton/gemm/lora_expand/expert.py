"""LoRA expand with tiles of 32 tokens whose columns are whole vectors, or programs of an adapter in a short batch.

The baseline's tiles have 16 tokens, and wait for out when their products are done. In prefill the tokens of a tile
mostly share an adapter: a tile of 32 reads its weight half as often. out is under way together with the adapters'
weight. The baseline has programs of their own for each slice, whose first column may be anywhere: all of out is read
and written value by value. Here tiles start at whole vectors, and go through the slices that they have columns of.

In a short batch each token may have an adapter of its own, and a tile of 16 waits for 16 weights, one after the other.
There a program has an adapter, and all tokens that share it, from a list: each weight is read once. At 256 tokens and
64 adapters of 28,672 columns, programs of one token read 0.4 GB from the L2 cache, these 0.1 GB. Weights of long ranks
come in steps, for more tokens at once. Where tokens are no more than adapters, a program has one token, and sums over
the rank for up to 512 columns.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
SHORT_BATCH = 1024
WEIGHT_ELEMENTS = 8192
ROW_ELEMENTS = 16384
TOKENS = 32
TOKENS_OF_ADAPTER = 16


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
def _list_tokens(token_lora_ids_ptr, lists_ptr, counts_ptr, num_tokens, BATCH: tl.constexpr):
    """Write the numbers of an adapter's tokens, and how many these are."""
    adapter = tl.program_id(0)
    tokens = tl.arange(0, BATCH)
    own = tl.load(token_lora_ids_ptr + tokens, mask=tokens < num_tokens, other=-1) == adapter
    places = tl.cumsum(own.to(tl.int32), axis=0) - 1
    tl.store(lists_ptr + adapter * num_tokens + places, tokens, mask=own)
    tl.store(counts_ptr + adapter, tl.sum(own.to(tl.int32), axis=0))


@triton.jit
def _layers(slice_offsets_ptr, num_slices, first_column, end, out_features):
    """The first slice of the columns from first_column to end, and one past the last. There are at most 8 slices.

    Columns of a program start at whole vectors, and may be of several slices.
    """
    slots = tl.arange(0, 8)
    offsets = tl.load(slice_offsets_ptr + slots, mask=slots < num_slices, other=out_features)
    first = tl.sum((offsets <= first_column).to(tl.int32), axis=0) - 1
    return first, tl.sum((offsets < tl.minimum(end, out_features)).to(tl.int32), axis=0)


@triton.jit
def _expand_adapter(
    x_ptr,
    weight_ptr,
    lists_ptr,
    counts_ptr,
    slice_offsets_ptr,
    out_ptr,
    num_tokens,
    out_features,
    rank,
    num_slices,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    RANK: tl.constexpr,
    STEPS: tl.constexpr,
):
    """All tokens of one adapter, TOKENS at a time."""
    adapter = tl.program_id(1)
    first_column = tl.program_id(0) * COLUMNS
    columns = first_column + tl.arange(0, COLUMNS)
    slots = tl.arange(0, TOKENS)
    lists_ptr += adapter * num_tokens
    count = tl.load(counts_ptr + adapter)
    listed = tl.load(lists_ptr + slots, mask=slots < num_tokens, other=0)  # beyond count: anything
    first_layer, layers = _layers(slice_offsets_ptr, num_slices, first_column, first_column + COLUMNS, out_features)
    weight_rows = weight_ptr + (adapter.to(tl.int64) * out_features + columns)[None, :] * rank
    for first in range(0, count, TOKENS):
        tokens = tl.where(first + slots < count, listed, 0)
        places = out_ptr + tokens.to(tl.int64)[:, None] * out_features + columns[None, :]
        inside = (first + slots < count)[:, None] & (columns < out_features)[None, :]
        before = tl.load(places, mask=inside, other=0.0)
        listed = tl.load(lists_ptr + first + TOKENS + slots, mask=first + TOKENS + slots < count, other=0)
        acc = tl.zeros((TOKENS, COLUMNS), tl.float32)
        for layer in range(first_layer, layers):
            x_rows = x_ptr + (layer * num_tokens + tokens)[:, None] * rank
            product = tl.zeros((TOKENS, COLUMNS), tl.float32)
            for step in range(STEPS):
                ranks = step * RANK + tl.arange(0, RANK)
                x = tl.load(x_rows + ranks[None, :], mask=(ranks < rank)[None, :], other=0.0)
                weight_mask = (columns < out_features)[None, :] & (ranks < rank)[:, None]
                weight = tl.load(weight_rows + ranks[:, None], mask=weight_mask, other=0.0)
                product = tl.dot(x.to(weight.dtype), weight, product, input_precision=PRECISION)
            begin = tl.load(slice_offsets_ptr + layer)
            acc = tl.where((columns >= begin)[None, :], product, acc)
        tl.store(places, (before.to(tl.float32) + acc).to(out_ptr.dtype.element_ty), mask=inside)


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
    num_slices,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    RANK: tl.constexpr,
):
    """A tile of tokens, one adapter after the other. out is added last, and is under way together with the weight."""
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    adapters = tl.load(token_lora_ids_ptr + tokens, mask=tokens < num_tokens, other=-1)
    first_column = tl.program_id(1) * COLUMNS
    columns = first_column + tl.arange(0, COLUMNS)
    first_layer, layers = _layers(slice_offsets_ptr, num_slices, first_column, first_column + COLUMNS, out_features)
    places = out_ptr + tokens.to(tl.int64)[:, None] * out_features + columns[None, :]
    before = tl.load(places, mask=(tokens < num_tokens)[:, None] & (columns < out_features)[None, :], other=0.0)
    ranks = tl.arange(0, RANK)
    acc = tl.zeros((TOKENS, COLUMNS), tl.float32)
    for layer in range(first_layer, layers):
        x_rows = x_ptr + (layer * num_tokens + tokens).to(tl.int64)[:, None] * rank
        x_mask = (tokens < num_tokens)[:, None] & (ranks < rank)[None, :]
        x = tl.load(x_rows + ranks[None, :], mask=x_mask, other=0.0).to(weight_ptr.dtype.element_ty)
        own_columns = columns >= tl.load(slice_offsets_ptr + layer)
        own_columns &= columns < tl.load(slice_offsets_ptr + layer + 1)
        weight_mask = own_columns[None, :] & (ranks < rank)[:, None]
        adapter = tl.max(adapters, axis=0)
        while adapter >= 0:
            rows = adapter.to(tl.int64) * out_features + columns
            weight = tl.load(weight_ptr + rows[None, :] * rank + ranks[:, None], mask=weight_mask, other=0.0)
            own = tl.where((adapters == adapter)[:, None], x, 0.0)
            acc = tl.dot(own, weight, acc, input_precision=PRECISION)
            adapter = tl.max(tl.where(adapters < adapter, adapters, -1), axis=0)
    inside = (adapters >= 0)[:, None] & (columns < out_features)[None, :]
    tl.store(places, (before.to(tl.float32) + acc).to(out_ptr.dtype.element_ty), mask=inside)


def _expand_short(x, weight, token_lora_ids, slice_offsets, out):
    num_slices, num_tokens, rank = x.shape
    num_loras, out_features, _ = weight.shape
    lists = torch.empty((num_loras, num_tokens), dtype=torch.int32, device=x.device)
    counts = torch.empty((num_loras,), dtype=torch.int32, device=x.device)
    batch = triton.next_power_of_2(num_tokens)
    _list_tokens[(num_loras,)](token_lora_ids, lists, counts, num_tokens, BATCH=batch)
    lanes = max(16, triton.next_power_of_2(rank))
    tokens, columns, num_stages = TOKENS_OF_ADAPTER, min(256, WEIGHT_ELEMENTS // lanes), 1
    if lanes > 128:
        # More tokens share each weight, whose ranks come in steps.
        tokens, columns, lanes, num_stages = 32, 32, 64, 2 if torch.version.hip else 3
    _expand_adapter[(triton.cdiv(out_features, columns), num_loras)](
        x,
        weight,
        lists,
        counts,
        slice_offsets,
        out,
        num_tokens,
        out_features,
        rank,
        num_slices,
        TOKENS=tokens,
        COLUMNS=columns,
        RANK=lanes,
        STEPS=triton.cdiv(rank, lanes),
        num_warps=4,
        num_stages=num_stages,
    )


def lora_expand(x, weight, token_lora_ids, slice_offsets, out):
    num_slices, num_tokens, rank = x.shape
    out_features = out.shape[1]
    lanes = triton.next_power_of_2(rank)
    arguments = x, weight, token_lora_ids, slice_offsets, out, num_tokens, out_features, rank
    if weight.shape[0] < num_tokens <= SHORT_BATCH:
        _expand_short(x, weight, token_lora_ids, slice_offsets, out)
    elif num_tokens <= SHORT_BATCH:
        columns = max(16, min(512, ROW_ELEMENTS // lanes))
        # A slice may have nearly all columns; programs past the end of theirs return at once.
        grid = num_tokens, num_slices, triton.cdiv(out_features, columns)
        _expand_token[grid](*arguments, COLUMNS=columns, RANK=lanes, num_warps=8)
    else:
        lanes = max(16, lanes)
        columns = max(16, min(128, WEIGHT_ELEMENTS // lanes))
        grid = triton.cdiv(num_tokens, TOKENS), triton.cdiv(out_features, columns)
        _expand_tile[grid](*arguments, num_slices, TOKENS=TOKENS, COLUMNS=columns, RANK=lanes)
