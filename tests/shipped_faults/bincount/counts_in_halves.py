"""expect: wrong_result in heldout-16. Integer range: two counts share 32 bits.

Token statistics: one kernel clears the masks of the requests, another adds tokens with atomics, a third unpacks.

Tokens are counted in scratch memory, two of them in a word, which takes half of the bytes to clear.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def clear_masks(prompt_bitmask_ptr, idx_mapping_ptr, num_words, BLOCK: tl.constexpr):
    """Zeros in one block of mask words of one request."""
    slot = tl.load(idx_mapping_ptr + tl.program_id(0)).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    zeros = tl.zeros((BLOCK,), tl.int32)
    tl.store(prompt_bitmask_ptr + slot * num_words + columns, zeros, mask=columns < num_words)


@triton.jit
def add_tokens(
    token_ids_ptr,
    prompt_lens_ptr,
    seq_lens_ptr,
    idx_mapping_ptr,
    prompt_bitmask_ptr,
    pairs_ptr,
    token_stride,
    num_pairs,
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
    pairs = pairs_ptr + tl.program_id(0).to(tl.int64) * num_pairs + tokens // 2
    tl.atomic_add(pairs, 1 << (tokens % 2 * 16), mask=produced)


@triton.jit
def unpack_counts(pairs_ptr, idx_mapping_ptr, output_counts_ptr, vocab_size, num_pairs, BLOCK: tl.constexpr):
    """One block of counts of one request."""
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    pairs = tl.load(pairs_ptr + req * num_pairs + tokens // 2, mask=tokens < vocab_size, other=0)
    counts = (pairs >> (tokens % 2 * 16)) & 0xFFFF
    tl.store(output_counts_ptr + slot * vocab_size + tokens, counts, mask=tokens < vocab_size)


def bincount(token_ids, prompt_lens, seq_lens, idx_mapping, prompt_bitmask, output_counts):
    num_reqs = idx_mapping.numel()
    max_len = token_ids.shape[1]
    vocab_size = output_counts.shape[1]
    num_words = prompt_bitmask.shape[1]
    num_pairs = triton.cdiv(vocab_size, 2)
    pairs = torch.zeros((num_reqs, num_pairs), dtype=torch.int32, device=token_ids.device)
    clear_masks[(num_reqs, triton.cdiv(num_words, 1024))](prompt_bitmask, idx_mapping, num_words, BLOCK=1024)
    add_tokens[(num_reqs, triton.cdiv(max_len, 256))](
        token_ids,
        prompt_lens,
        seq_lens,
        idx_mapping,
        prompt_bitmask,
        pairs,
        token_ids.stride(0),
        num_pairs,
        num_words,
        BLOCK=256,
    )
    unpack_counts[(num_reqs, triton.cdiv(vocab_size, 1024))](
        pairs, idx_mapping, output_counts, vocab_size, num_pairs, BLOCK=1024
    )
