"""Penalties in tiles of 64 words of the bit set and their 2048 tokens, of which a thread has vectors of 16 bytes.

The baseline loads a word for each of its tokens and divides by a factor; here a word is loaded once for its 32 tokens,
and the penalty's reciprocal is computed once for a tile.
"""

import triton
import triton.language as tl


@triton.jit
def _penalize_tile(
    logits_ptr,
    repetition_ptr,
    frequency_ptr,
    presence_ptr,
    prompt_bitmask_ptr,
    output_counts_ptr,
    idx_mapping_ptr,
    vocab_size,
    num_words,
    row_stride,
    WORDS: tl.constexpr,
):
    tiles = tl.cdiv(num_words, WORDS)
    req = (tl.program_id(0) // tiles).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    word_places = tl.program_id(0) % tiles * WORDS + tl.arange(0, WORDS)
    bits = tl.arange(0, 32)[None, :]
    tokens = word_places[:, None] * 32 + bits
    inside = tokens < vocab_size
    x = tl.load(logits_ptr + req * row_stride + tokens, mask=inside, other=0.0)
    counts = tl.load(output_counts_ptr + slot * vocab_size + tokens, mask=inside, other=0)
    words = tl.load(prompt_bitmask_ptr + slot * num_words + word_places, mask=word_places < num_words, other=0)
    repetition = tl.load(repetition_ptr + slot)
    frequency = tl.load(frequency_ptr + slot)
    presence = tl.load(presence_ptr + slot)

    produced = counts > 0
    marked = (((words[:, None] >> bits) & 1) != 0) | produced
    x = tl.where(marked, x * tl.where(x > 0, 1.0 / repetition, repetition), x)
    x -= frequency * counts + tl.where(produced, presence, 0.0)
    tl.store(logits_ptr + req * row_stride + tokens, x, mask=inside)


def penalties(
    logits, repetition_penalty, frequency_penalty, presence_penalty, prompt_bitmask, output_counts, idx_mapping
):
    num_reqs, vocab_size = logits.shape
    num_words = prompt_bitmask.shape[1]
    words = min(64, triton.next_power_of_2(num_words))
    _penalize_tile[(num_reqs * triton.cdiv(num_words, words),)](
        logits,
        repetition_penalty,
        frequency_penalty,
        presence_penalty,
        prompt_bitmask,
        output_counts,
        idx_mapping,
        vocab_size,
        num_words,
        logits.stride(0),
        WORDS=words,
    )
