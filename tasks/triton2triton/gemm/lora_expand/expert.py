"""LoRA expand with a tile of neighbouring tokens a program, on matrix units, one adapter of the tile after the other.

In prefill the tokens of a tile mostly share an adapter: its weight is read once for 32 tokens, where the baseline reads
it for each, and one product of the tile replaces a sum over the rank for every token. In a short batch each token may
have an adapter of its own: there a program has one token, as in the baseline, and little to gain.
"""

import triton
import triton.language as tl

SHORT_BATCH = 1024
WEIGHT_ELEMENTS = 8192


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
    STEP: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    RANK: tl.constexpr,
):
    layer = tl.program_id(1)
    first_column = tl.load(slice_offsets_ptr + layer) + tl.program_id(2) * COLUMNS
    end = tl.load(slice_offsets_ptr + layer + 1)
    if first_column < end:
        # A product has 16 rows at least, also for one token.
        lanes = tl.arange(0, TOKENS)
        tokens = tl.program_id(0) * STEP + lanes
        adapters = tl.load(token_lora_ids_ptr + tokens, mask=(lanes < STEP) & (tokens < num_tokens), other=-1)
        columns = first_column + tl.arange(0, COLUMNS)
        ranks = tl.arange(0, RANK)
        x_rows = x_ptr + (layer * num_tokens + tokens).to(tl.int64)[:, None] * rank
        x_mask = (adapters >= 0)[:, None] & (ranks < rank)[None, :]
        x = tl.load(x_rows + ranks[None, :], mask=x_mask, other=0.0).to(weight_ptr.dtype.element_ty)
        weight_mask = (columns < end)[None, :] & (ranks < rank)[:, None]
        acc = tl.zeros((TOKENS, COLUMNS), tl.float32)
        adapter = tl.max(adapters, axis=0)
        while adapter >= 0:
            rows = adapter.to(tl.int64) * out_features + columns
            weight = tl.load(weight_ptr + rows[None, :] * rank + ranks[:, None], mask=weight_mask, other=0.0)
            own = tl.where((adapters == adapter)[:, None], x, 0.0)
            acc += tl.dot(own, weight, input_precision="ieee")
            adapter = tl.max(tl.where(adapters < adapter, adapters, -1), axis=0)
        places = out_ptr + tokens.to(tl.int64)[:, None] * out_features + columns[None, :]
        inside = (adapters >= 0)[:, None] & (columns < end)[None, :]
        result = tl.load(places, mask=inside, other=0.0).to(tl.float32) + acc
        tl.store(places, result.to(out_ptr.dtype.element_ty), mask=inside)


def lora_expand(x, weight, token_lora_ids, slice_offsets, out):
    num_slices, num_tokens, rank = x.shape
    out_features = out.shape[1]
    lanes = max(16, triton.next_power_of_2(rank))
    columns = max(16, min(128, WEIGHT_ELEMENTS // lanes))
    step = 1 if num_tokens <= SHORT_BATCH else 32
    # A slice may have nearly all columns; programs past the end of theirs return at once.
    _expand_tile[(triton.cdiv(num_tokens, step), num_slices, triton.cdiv(out_features, columns))](
        x,
        weight,
        token_lora_ids,
        slice_offsets,
        out,
        num_tokens,
        out_features,
        rank,
        STEP=step,
        TOKENS=max(16, step),
        COLUMNS=columns,
        RANK=lanes,
    )
