"""Token statistics: one kernel clears the rows of the requests, another adds tokens to them with atomics."""

import triton
import triton.language as tl


@triton.jit
def clear_rows(prompt_bitmask_ptr, output_counts_ptr, idx_mapping_ptr, vocab_size, num_words, BLOCK: tl.constexpr):
    """Zeros in one block of counts of one request, and in the same block of mask words if there is one."""
    slot = tl.load(idx_mapping_ptr + tl.program_id(0)).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    zeros = tl.zeros((BLOCK,), tl.int32)
    tl.store(output_counts_ptr + slot * vocab_size + columns, zeros, mask=columns < vocab_size)
    tl.store(prompt_bitmask_ptr + slot * num_words + columns, zeros, mask=columns < num_words)


@triton.jit
def add_tokens(
    token_ids_ptr,
    prompt_lens_ptr,
    seq_lens_ptr,
    idx_mapping_ptr,
    prompt_bitmask_ptr,
    output_counts_ptr,
    token_stride,
    vocab_size,
    num_words,
    BLOCK: tl.constexpr,
):
    """One block of tokens of one request."""
    slot = tl.load(idx_mapping_ptr + tl.program_id(0)).to(tl.int64)
    prompt_len = tl.load(prompt_lens_ptr + slot)
    seq_len = tl.load(seq_lens_ptr + slot)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tokens = tl.load(token_ids_ptr + slot * token_stride + places, mask=places < seq_len, other=0)
    bits = 1 << (tokens % 32)
    tl.atomic_or(prompt_bitmask_ptr + slot * num_words + tokens // 32, bits, mask=places < prompt_len)
    produced = (places >= prompt_len) & (places < seq_len)
    tl.atomic_add(output_counts_ptr + slot * vocab_size + tokens, 1, mask=produced)


def bincount(token_ids, prompt_lens, seq_lens, idx_mapping, prompt_bitmask, output_counts):
    num_reqs = idx_mapping.numel()
    max_len = token_ids.shape[1]
    vocab_size = output_counts.shape[1]
    num_words = prompt_bitmask.shape[1]
    clear_grid = (num_reqs, triton.cdiv(vocab_size, 1024))
    clear_rows[clear_grid](prompt_bitmask, output_counts, idx_mapping, vocab_size, num_words, BLOCK=1024)
    add_tokens[(num_reqs, triton.cdiv(max_len, 256))](
        token_ids,
        prompt_lens,
        seq_lens,
        idx_mapping,
        prompt_bitmask,
        output_counts,
        token_ids.stride(0),
        vocab_size,
        num_words,
        BLOCK=256,
    )
