"""expect: wrong_result in heldout-17. A scalar's sign: penalties below 0 count as none.

Penalties on logits: one program per request and 256 tokens.
"""

import triton
import triton.language as tl


@triton.jit
def penalize_block(
    logits_ptr,
    repetition_ptr,
    frequency_ptr,
    presence_ptr,
    prompt_bitmask_ptr,
    output_counts_ptr,
    idx_mapping_ptr,
    vocab_size,
    row_stride,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    repetition = tl.load(repetition_ptr + slot)
    frequency = tl.load(frequency_ptr + slot)
    presence = tl.load(presence_ptr + slot)
    # Most requests ask for none of the three.
    if not ((repetition != 1.0) | (frequency > 0.0) | (presence > 0.0)):
        return

    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = tokens < vocab_size
    x = tl.load(logits_ptr + req * row_stride + tokens, mask=inside, other=0.0)
    counts = tl.load(output_counts_ptr + slot * vocab_size + tokens, mask=inside, other=0)
    words = tl.load(prompt_bitmask_ptr + slot * tl.cdiv(vocab_size, 32) + tokens // 32, mask=inside, other=0)
    in_prompt = ((words >> (tokens % 32)) & 1) != 0
    produced = counts > 0

    factor = tl.where(in_prompt | produced, repetition, 1.0)
    x = tl.where(x > 0, x / factor, x * factor)
    x -= frequency * counts
    x -= tl.where(produced, presence, 0.0)
    tl.store(logits_ptr + req * row_stride + tokens, x, mask=inside)


def penalties(
    logits, repetition_penalty, frequency_penalty, presence_penalty, prompt_bitmask, output_counts, idx_mapping
):
    num_reqs, vocab_size = logits.shape
    penalize_block[(num_reqs, triton.cdiv(vocab_size, 256))](
        logits,
        repetition_penalty,
        frequency_penalty,
        presence_penalty,
        prompt_bitmask,
        output_counts,
        idx_mapping,
        vocab_size,
        logits.stride(0),
        BLOCK=256,
    )
