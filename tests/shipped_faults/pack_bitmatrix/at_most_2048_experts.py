"""expect: wrong_result in heldout-04. Size limit: 64 words hold 2,048 experts, and no more are written."""

import triton
import triton.language as tl

TILE_ELEMENTS = 1024


@triton.jit
def pack_words(ids_ptr, words_ptr, num_tokens, num_words, top_k, BLOCK: tl.constexpr, WORDS: tl.constexpr):
    tokens = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    words = tl.arange(0, WORDS)
    inside = tokens < num_tokens
    bits = tl.zeros((BLOCK, WORDS), tl.int32)
    for choice in range(top_k):
        ids = tl.load(ids_ptr + tokens * top_k + choice, mask=inside, other=-1).to(tl.int32)
        # Shifting an id of -1 down leaves -1, which is no word.
        chosen = (ids >> 5)[:, None] == words[None, :]
        bits |= tl.where(chosen, 1, 0) << (ids & 31)[:, None]
    places = tokens[:, None] * num_words + words[None, :]
    tl.store(words_ptr + places, bits, mask=inside[:, None] & (words < num_words)[None, :])


def pack_bitmatrix(topk_ids, words):
    num_tokens, num_words = words.shape
    width = min(64, triton.next_power_of_2(num_words))
    block = max(32, TILE_ELEMENTS // width)
    pack_words[(triton.cdiv(num_tokens, block),)](
        topk_ids, words, num_tokens, num_words, topk_ids.shape[1], BLOCK=block, WORDS=width
    )
