"""Bad words: a program compares a block of one request's banned sequences with its history, token by token."""

import triton
import triton.language as tl


@triton.jit
def ban_sequences(
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
    WORDS: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    words = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    banned = words < tl.load(num_bad_words_ptr + slot)
    offset_ptr = offsets_ptr + slot * (max_bad_words + 1) + words
    begin = tl.load(offset_ptr, mask=banned, other=0)
    last = tl.load(offset_ptr + 1, mask=banned, other=1) - 1
    history_begin = tl.load(seq_lens_ptr + slot) - (last - begin)
    matches = banned & (history_begin >= 0)
    word_ptr = bad_word_ids_ptr + slot * room + begin
    history_ptr = token_ids_ptr + slot * max_len + history_begin
    for i in range(tl.max(last - begin, axis=0)):
        inside = matches & (i < last - begin)
        word_token = tl.load(word_ptr + i, mask=inside, other=0)
        history_token = tl.load(history_ptr + i, mask=inside, other=0)
        matches = matches & (word_token == history_token)
    token = tl.load(bad_word_ids_ptr + slot * room + last, mask=matches, other=0)
    tl.store(logits_ptr + req * row_stride + token, -float("inf"), mask=matches)


def bad_words(logits, bad_word_ids, offsets, num_bad_words, token_ids, seq_lens, idx_mapping):
    num_reqs = logits.shape[0]
    max_bad_words = offsets.shape[1] - 1
    ban_sequences[(num_reqs, triton.cdiv(max_bad_words, 64))](
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
        WORDS=64,
        num_warps=2,
    )
