"""Token statistics with relaxed atomics, wider clears, and no work past the end of a sequence.

The baseline's atomics order all memory accesses around them, so that each waits for those before it, although nobody
reads a result before the launch ends. On AMD GPUs each also writes back and invalidates caches. Clears have a program
for every 4 KB, which loads the slot before its first store. Programs whose tokens all lie past the end of the sequence
issue both masked atomics nevertheless.

Here atomics are relaxed, and a program clears 16 KB by vectors of 16 bytes. A thread loads four tokens at once (two
where warps have 64 lanes), in place of single ones. Programs past the end of a sequence stop at once.
"""

import triton
import triton.language as tl

CLEARED = 4096
TOKENS = 512


@triton.jit
def _clear_rows(prompt_bitmask_ptr, output_counts_ptr, idx_mapping_ptr, vocab_size, num_words, BLOCK: tl.constexpr):
    slot = tl.load(idx_mapping_ptr + tl.program_id(0)).to(tl.int64)
    first = tl.program_id(1) * BLOCK
    columns = first + tl.arange(0, BLOCK)
    zeros = tl.zeros((BLOCK,), tl.int32)
    tl.store(output_counts_ptr + slot * vocab_size + columns, zeros, mask=columns < vocab_size)
    if first < num_words:
        tl.store(prompt_bitmask_ptr + slot * num_words + columns, zeros, mask=columns < num_words)


@triton.jit
def _add_tokens(
    token_ids_ptr,
    prompt_lens_ptr,
    seq_lens_ptr,
    idx_mapping_ptr,
    prompt_bitmask_ptr,
    output_counts_ptr,
    token_stride,
    max_len,
    vocab_size,
    num_words,
    BLOCK: tl.constexpr,
):
    slot = tl.load(idx_mapping_ptr + tl.program_id(0)).to(tl.int64)
    prompt_len = tl.load(prompt_lens_ptr + slot)
    seq_len = tl.load(seq_lens_ptr + slot)
    first = tl.program_id(1) * BLOCK
    if first < seq_len:
        places = first + tl.arange(0, BLOCK)
        # The mask is the same for every request, so that it does not keep loads from being vectors.
        tokens = tl.load(token_ids_ptr + slot * token_stride + places, mask=places < max_len, other=0)
        words_ptr = prompt_bitmask_ptr + slot * num_words + (tokens >> 5)
        tl.atomic_or(words_ptr, 1 << (tokens & 31), mask=places < prompt_len, sem="relaxed")
        produced = (places >= prompt_len) & (places < seq_len)
        tl.atomic_add(output_counts_ptr + slot * vocab_size + tokens, 1, mask=produced, sem="relaxed")


def bincount(token_ids, prompt_lens, seq_lens, idx_mapping, prompt_bitmask, output_counts):
    num_reqs = idx_mapping.numel()
    max_len = token_ids.shape[1]
    vocab_size = output_counts.shape[1]
    num_words = prompt_bitmask.shape[1]
    clear_grid = (num_reqs, triton.cdiv(vocab_size, CLEARED))
    _clear_rows[clear_grid](prompt_bitmask, output_counts, idx_mapping, vocab_size, num_words, BLOCK=CLEARED)
    _add_tokens[(num_reqs, triton.cdiv(max_len, TOKENS))](
        token_ids,
        prompt_lens,
        seq_lens,
        idx_mapping,
        prompt_bitmask,
        output_counts,
        token_ids.stride(0),
        max_len,
        vocab_size,
        num_words,
        BLOCK=TOKENS,
    )
