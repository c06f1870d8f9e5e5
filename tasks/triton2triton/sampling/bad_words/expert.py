"""Bad words with all tokens of a sequence and of the history's end loaded at once.

The baseline compares token by token and loads the next pair only where the one before agreed: for sequences of up to L
tokens, L - 1 rounds of two loads that wait for each other, after a reduction that finds the number of rounds. Offsets
wait for the number of sequences, and the last token for the last comparison.

Here the greatest length is a constant, as bad_word_ids has that much room for each sequence. The loop is unrolled and
no load depends on a comparison, so that the rounds become one. Offsets and lengths are loaded together. Sequences of
up to eight tokens lie in one or two sectors of 32 bytes in any case, so that reading them whole costs no bytes.
"""

import triton
import triton.language as tl

WORDS = 64


@triton.jit
def _ban_block(
    logits_ptr,
    bad_word_ids_ptr,
    offsets_ptr,
    num_bad_words_ptr,
    token_ids_ptr,
    seq_lens_ptr,
    idx_mapping_ptr,
    row_stride,
    room,
    max_len,
    max_bad_words,
    MOST_TOKENS: tl.constexpr,
    WORDS: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    first = tl.program_id(1) * WORDS
    words = first + tl.arange(0, WORDS)
    offset_ptr = offsets_ptr + slot * (max_bad_words + 1) + words
    begin = tl.load(offset_ptr, mask=words < max_bad_words, other=0)
    last = tl.load(offset_ptr + 1, mask=words < max_bad_words, other=1) - 1
    num_words = tl.load(num_bad_words_ptr + slot)
    seq_len = tl.load(seq_lens_ptr + slot)
    if first < num_words:
        prefix = last - begin
        possible = (words < num_words) & (prefix <= seq_len)
        word_ptr = bad_word_ids_ptr + slot * room + begin
        history_ptr = token_ids_ptr + slot * max_len + seq_len - prefix
        token = tl.load(word_ptr + prefix, mask=possible, other=0)
        matches = possible
        for i in tl.static_range(MOST_TOKENS - 1):
            inside = possible & (i < prefix)
            word_token = tl.load(word_ptr + i, mask=inside, other=0)
            history_token = tl.load(history_ptr + i, mask=inside, other=0)
            matches = matches & (word_token == history_token)
        tl.store(logits_ptr + req * row_stride + token, -float("inf"), mask=matches)


def bad_words(logits, bad_word_ids, offsets, num_bad_words, token_ids, seq_lens, idx_mapping):
    num_reqs = logits.shape[0]
    max_bad_words = offsets.shape[1] - 1
    _ban_block[(num_reqs, triton.cdiv(max_bad_words, WORDS))](
        logits,
        bad_word_ids,
        offsets,
        num_bad_words,
        token_ids,
        seq_lens,
        idx_mapping,
        logits.stride(0),
        bad_word_ids.shape[1],
        token_ids.shape[1],
        max_bad_words,
        MOST_TOKENS=bad_word_ids.shape[1] // max_bad_words,
        WORDS=WORDS,
        num_warps=2,
    )
