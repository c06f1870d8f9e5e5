"""Grammar masks: one program per mask and 512 tokens reads logits and writes all of them back."""

import triton
import triton.language as tl


@triton.jit
def mask_block(logits_ptr, bitmask_ptr, row_indices_ptr, vocab_size, row_stride, num_words, BLOCK: tl.constexpr):
    mask_row = tl.program_id(0).to(tl.int64)
    row = tl.load(row_indices_ptr + mask_row).to(tl.int64)
    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = tokens < vocab_size
    words = tl.load(bitmask_ptr + mask_row * num_words + tokens // 32, mask=inside, other=0)
    admitted = (words >> (tokens % 32)) & 1
    logit_ptrs = logits_ptr + row * row_stride + tokens
    x = tl.load(logit_ptrs, mask=inside, other=0.0)
    tl.store(logit_ptrs, tl.where(admitted == 0, -float("inf"), x), mask=inside)


def apply_grammar_bitmask(logits, bitmask, row_indices):
    vocab_size = logits.shape[1]
    num_masks, num_words = bitmask.shape
    grid = (num_masks, triton.cdiv(vocab_size, 512))
    mask_block[grid](logits, bitmask, row_indices, vocab_size, logits.stride(0), num_words, BLOCK=512)
