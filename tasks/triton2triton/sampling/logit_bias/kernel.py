"""Allow-lists, biases and a least length: one kernel for each step.

The logits of allowed tokens are set aside before their row is filled with minus infinity, and put back afterwards.
"""

import torch
import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def move_allowed(
    logits_ptr,
    aside_ptr,
    token_ids_ptr,
    counts_ptr,
    idx_mapping_ptr,
    row_stride,
    room,
    BACK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sets a block of one request's allowed logits aside, or puts it back."""
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    entries = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    listed = entries < tl.load(counts_ptr + slot)
    tokens = tl.load(token_ids_ptr + slot * room + entries, mask=listed, other=0)
    logit_ptrs = logits_ptr + req * row_stride + tokens
    aside_ptrs = aside_ptr + req * tl.num_programs(1) * BLOCK + entries  # rows of whole blocks
    if BACK:
        tl.store(logit_ptrs, tl.load(aside_ptrs, mask=listed), mask=listed)
    else:
        tl.store(aside_ptrs, tl.load(logit_ptrs, mask=listed), mask=listed)


@triton.jit
def forbid_all(logits_ptr, counts_ptr, idx_mapping_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    """Minus infinity in a block of the vocabulary, if the request has an allow-list."""
    req = tl.program_id(0).to(tl.int64)
    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    limited = tl.load(counts_ptr + tl.load(idx_mapping_ptr + req)) > 0
    nothing = tl.full((BLOCK,), -float("inf"), tl.float32)
    tl.store(logits_ptr + req * row_stride + tokens, nothing, mask=limited & (tokens < vocab_size))


@triton.jit
def add_bias(logits_ptr, token_ids_ptr, bias_ptr, counts_ptr, idx_mapping_ptr, row_stride, room, BLOCK: tl.constexpr):
    """A block of one request's biases."""
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    entries = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    listed = entries < tl.load(counts_ptr + slot)
    tokens = tl.load(token_ids_ptr + slot * room + entries, mask=listed, other=0)
    bias = tl.load(bias_ptr + slot * room + entries, mask=listed, other=0.0)
    logit_ptrs = logits_ptr + req * row_stride + tokens
    tl.store(logit_ptrs, tl.load(logit_ptrs, mask=listed, other=0.0) + bias, mask=listed)


@triton.jit
def mask_stop(
    logits_ptr,
    token_ids_ptr,
    counts_ptr,
    min_lens_ptr,
    idx_mapping_ptr,
    positions_ptr,
    row_stride,
    room,
    BLOCK: tl.constexpr,
):
    """A block of one request's stop tokens, if the request is still too short to end."""
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    if tl.load(positions_ptr + req) < tl.load(min_lens_ptr + slot):
        entries = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        listed = entries < tl.load(counts_ptr + slot)
        tokens = tl.load(token_ids_ptr + slot * room + entries, mask=listed, other=0)
        tl.store(logits_ptr + req * row_stride + tokens, -float("inf"), mask=listed)


def logit_bias(
    logits,
    allowed_token_ids,
    num_allowed,
    bias_token_ids,
    bias,
    num_bias,
    stop_token_ids,
    num_stop,
    min_lens,
    idx_mapping,
    positions,
):
    num_reqs, vocab_size = logits.shape
    row_stride = logits.stride(0)
    max_allowed, max_bias, max_stop = (ids.shape[1] for ids in (allowed_token_ids, bias_token_ids, stop_token_ids))
    allowed_blocks = triton.cdiv(max_allowed, BLOCK)
    aside = torch.empty((num_reqs, allowed_blocks * BLOCK), dtype=torch.float32, device=logits.device)
    allowed = (logits, aside, allowed_token_ids, num_allowed, idx_mapping, row_stride, max_allowed)
    allowed_grid = (num_reqs, allowed_blocks)
    move_allowed[allowed_grid](*allowed, BACK=False, BLOCK=BLOCK)
    forbid_all[(num_reqs, triton.cdiv(vocab_size, 1024))](
        logits, num_allowed, idx_mapping, vocab_size, row_stride, BLOCK=1024
    )
    move_allowed[allowed_grid](*allowed, BACK=True, BLOCK=BLOCK)
    add_bias[(num_reqs, triton.cdiv(max_bias, BLOCK))](
        logits, bias_token_ids, bias, num_bias, idx_mapping, row_stride, max_bias, BLOCK=BLOCK
    )
    mask_stop[(num_reqs, triton.cdiv(max_stop, 64))](
        logits, stop_token_ids, num_stop, min_lens, idx_mapping, positions, row_stride, max_stop, BLOCK=64
    )
