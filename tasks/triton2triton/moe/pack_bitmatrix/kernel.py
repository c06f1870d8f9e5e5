"""Bit sets of experts: one program per tile of tokens and word ORs the choices in one after the other."""

import triton
import triton.language as tl


@triton.jit
def pack_word(ids_ptr, words_ptr, num_tokens, num_words, top_k, BLOCK: tl.constexpr):
    tokens = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word = tl.program_id(1)
    bits = tl.zeros((BLOCK,), tl.int32)
    for choice in range(top_k):
        ids = tl.load(ids_ptr + tokens * top_k + choice, mask=tokens < num_tokens, other=-1).to(tl.int32)
        # Shifting an id of -1 down leaves -1, which is no word.
        bits |= tl.where(ids >> 5 == word, 1, 0) << (ids & 31)
    tl.store(words_ptr + tokens * num_words + word, bits, mask=tokens < num_tokens)


def pack_bitmatrix(topk_ids, words):
    num_tokens, num_words = words.shape
    block = 64
    pack_word[(triton.cdiv(num_tokens, block), num_words)](
        topk_ids, words, num_tokens, num_words, topk_ids.shape[1], BLOCK=block
    )
