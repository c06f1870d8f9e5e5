"""Bad words: one program per request and banned sequence compares it with the history, token by token."""

import triton
import triton.language as tl


@triton.jit
def ban_sequence(
    logits_ptr,
    bad_word_ids_ptr,
    offsets_ptr,
    num_bad_words_ptr,
    token_ids_ptr,
    seq_lens_ptr,
    idx_mapping_ptr,
    vocab_size,
    room,
    max_len,
    max_bad_words,
):
    req = tl.program_id(0).to(tl.int64)
    word = tl.program_id(1)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    if word < tl.load(num_bad_words_ptr + slot):
        offset_ptr = offsets_ptr + slot * (max_bad_words + 1) + word
        begin = tl.load(offset_ptr)
        last = tl.load(offset_ptr + 1) - 1
        history_begin = tl.load(seq_lens_ptr + slot) - (last - begin)
        if history_begin >= 0:
            word_ptr = bad_word_ids_ptr + slot * room + begin
            history_ptr = token_ids_ptr + slot * max_len + history_begin
            different = 0
            for i in range(last - begin):
                different += (tl.load(word_ptr + i) != tl.load(history_ptr + i)).to(tl.int32)
            if different == 0:
                token = tl.load(bad_word_ids_ptr + slot * room + last)
                tl.store(logits_ptr + req * vocab_size + token, -float("inf"))


def bad_words(logits, bad_word_ids, offsets, num_bad_words, token_ids, seq_lens, idx_mapping):
    num_reqs, vocab_size = logits.shape
    max_bad_words = offsets.shape[1] - 1
    ban_sequence[(num_reqs, max_bad_words)](
        logits,
        bad_word_ids,
        offsets,
        num_bad_words,
        token_ids,
        seq_lens,
        idx_mapping,
        vocab_size,
        bad_word_ids.shape[1],
        token_ids.shape[1],
        max_bad_words,
    )
