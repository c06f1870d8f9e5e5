"""Bit sets of experts with the shape as constants, so that all choices are loaded at once and words stored as vectors.

The baseline knows neither top_k nor num_words. Its loop loads one id after the other, and in most layouts passes each
through shared memory with a barrier. Unless the number of words is a multiple of 16, each word is a store of 4 bytes.

Here the loop over choices is unrolled, so that a thread has the loads of all of a token's ids on the way together. If
the number of words is a multiple of four, a thread has four words of one token, or two where warps have 64 lanes. It
loads the ids once for them and stores them at once. Otherwise tiles have one dimension over the words of all tokens:
stores are vectors again, and no lane has a word of padding, which are three of eight for 160 experts.
"""

import triton
import triton.language as tl

# Of eight words, tiles of 1024 have their ids passed through shared memory on an H200.
TILE_ELEMENTS = 512


@triton.jit
def _pack_tokens(
    ids_ptr,
    words_ptr,
    num_tokens,
    TOP_K: tl.constexpr,
    NUM_WORDS: tl.constexpr,
    BLOCK: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Tiles of tokens times words."""
    tokens = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    words = tl.arange(0, WORDS)
    inside = tokens < num_tokens
    bits = tl.zeros((BLOCK, WORDS), tl.int32)
    for choice in tl.static_range(TOP_K):
        ids = tl.load(ids_ptr + tokens * TOP_K + choice, mask=inside, other=-1).to(tl.int32)
        # Shifting an id of -1 down leaves -1, which is no word.
        bits |= tl.where((ids >> 5)[:, None] == words[None, :], (1 << (ids & 31))[:, None], 0)
    kept = inside[:, None]
    if WORDS > NUM_WORDS:
        kept = kept & (words < NUM_WORDS)[None, :]
    tl.store(words_ptr + tokens[:, None] * NUM_WORDS + words[None, :], bits, mask=kept)


@triton.jit
def _pack_places(ids_ptr, words_ptr, num_places, TOP_K: tl.constexpr, NUM_WORDS: tl.constexpr, BLOCK: tl.constexpr):
    """Tiles of the words of all tokens, one after the other."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < num_places
    tokens = places // NUM_WORDS
    words = places - tokens * NUM_WORDS
    bits = tl.zeros((BLOCK,), tl.int32)
    for choice in tl.static_range(TOP_K):
        ids = tl.load(ids_ptr + tokens * TOP_K + choice, mask=inside, other=-1).to(tl.int32)
        bits |= tl.where(ids >> 5 == words, 1 << (ids & 31), 0)
    tl.store(words_ptr + places, bits, mask=inside)


def pack_bitmatrix(topk_ids, words):
    num_tokens, num_words = words.shape
    top_k = topk_ids.shape[1]
    if num_words % 4 == 0:
        width = triton.next_power_of_2(num_words)
        block = max(32, TILE_ELEMENTS // width)
        grid = (triton.cdiv(num_tokens, block),)
        _pack_tokens[grid](topk_ids, words, num_tokens, TOP_K=top_k, NUM_WORDS=num_words, BLOCK=block, WORDS=width)
    else:
        places = num_tokens * num_words
        grid = (triton.cdiv(places, TILE_ELEMENTS),)
        _pack_places[grid](topk_ids, words, places, TOP_K=top_k, NUM_WORDS=num_words, BLOCK=TILE_ELEMENTS)
