"""Byte copies in words, on a grid over copies and strips of their rows.

The baseline moves one byte an access, in strips of 64 KiB, so that 16 copies of 256 KiB keep 64 programs busy. Here the
strips are as many as a device needs, and an access moves 16 bytes where both addresses are multiples of 16. Elsewhere
words of 4 bytes are aligned at the target, and each is put together from the two source words that it lies in; the
second of these is the neighbour's first, so that memory sees every byte once.
"""

import triton
import triton.language as tl

TILE_WORDS = 2048
PROGRAMS = 8192
"""Programs to share all copies among, each of which has at least a tile of a row."""


@triton.jit
def _copy_bytes(source, target, first, end):
    """The bytes first … end - 1, 16 at most."""
    i = first + tl.arange(0, 16)
    values = tl.load(source.to(tl.pointer_type(tl.uint8)) + i, mask=i < end)
    tl.store(target.to(tl.pointer_type(tl.uint8)) + i, values, mask=i < end)


@triton.jit
def _copy_vectors(source, target, vectors, first, step, WORDS: tl.constexpr):
    """Every step-th tile of vectors of 16 bytes; both addresses are multiples of 16."""
    source_ptr = tl.multiple_of(source.to(tl.pointer_type(tl.uint32)), 16)
    target_ptr = tl.multiple_of(target.to(tl.pointer_type(tl.uint32)), 16)
    lane = tl.arange(0, 4)[None, :]
    for tile in range(first, vectors, step):
        vector = (tile + tl.arange(0, WORDS // 4))[:, None]
        inside = tl.broadcast_to(vector < vectors, (WORDS // 4, 4))
        words = tl.load(source_ptr + vector * 4 + lane, mask=inside)
        tl.store(target_ptr + vector * 4 + lane, words, mask=inside)


@triton.jit
def _copy_words(source, target, words, first, step, WORDS: tl.constexpr):
    """Every step-th tile of words whose targets are aligned and whose sources begin anywhere within their words."""
    skipped = source % 4
    source_ptr = (source // 4 * 4).to(tl.pointer_type(tl.uint32))
    target_ptr = target.to(tl.pointer_type(tl.uint32))
    shift = (skipped * 8).to(tl.uint32)
    for tile in range(first, words, step):
        i = tile + tl.arange(0, WORDS)
        low = tl.load(source_ptr + i, mask=i < words, other=0)
        high = tl.load(source_ptr + i + 1, mask=(i < words) & (skipped > 0), other=0)
        # Where nothing is skipped, high is 0, and its shift by 32 bits in two steps gives 0.
        tl.store(target_ptr + i, (low >> shift) | (high << (31 - shift) << 1), mask=i < words)


@triton.jit
def _copy_strip(src_ptrs_ptr, dst_ptrs_ptr, sizes_ptr, strips, WORDS: tl.constexpr):
    copy = tl.program_id(0) // strips
    strip = tl.program_id(0) % strips
    source = tl.load(src_ptrs_ptr + copy)
    target = tl.load(dst_ptrs_ptr + copy)
    size = tl.load(sizes_ptr + copy)
    if (source | target) % 16 == 0:
        vectors = size // 16
        _copy_vectors(source, target, vectors, strip * (WORDS // 4), strips * (WORDS // 4), WORDS)
        if strip == 0:
            _copy_bytes(source, target, vectors * 16, size)
    else:
        # Four bytes and those before the next target word, so that no source word begins before the source.
        head = tl.minimum(4 + (4 - target % 4) % 4, size)
        words = tl.maximum(size - head - 4, 0) // 4
        _copy_words(source + head, target + head, words, strip * WORDS, strips * WORDS, WORDS)
        if strip == 0:
            _copy_bytes(source, target, 0, head)
            _copy_bytes(source, target, head + words * 4, size)


def batch_memcpy(source, destination, src_ptrs, dst_ptrs, sizes):
    num_copies, row_bytes = source.shape
    words = min(TILE_WORDS, max(128, triton.next_power_of_2(triton.cdiv(row_bytes, 4))))
    strips = max(1, min(triton.cdiv(row_bytes, 4 * words), PROGRAMS // num_copies))
    _copy_strip[(num_copies * strips,)](src_ptrs, dst_ptrs, sizes, strips, WORDS=words, num_warps=max(1, words // 512))
