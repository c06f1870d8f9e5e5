"""Grammar masks in tiles of 4096 tokens, of which sectors of 32 bytes are left alone where the bits allow it.

The baseline reads and writes every logit, 8 bytes a token. One of its programs has 512 logits: one vector of 16 bytes a
thread (8 on AMD), which waits for the number of the row, after four loads of the same word of bits.

Here a byte of bits is a sector of eight logits. Where it is 0 nothing is read, as all eight become minus infinity;
where it is 255 nothing is read or written. In production cases a quarter of the rows admit one token in eight and a
quarter seven. (7/8)^8 = 34 % of their sectors are not read, and of the latter's not written either. That is 13 % of
the bytes that the baseline moves.

A thread has eight vectors of 16 bytes on the way (four on AMD) for one wait, and loads bits in words of four bytes.
The mask is the same for a whole sector, so that loads and stores stay vectors and no sector is written in part.
"""

import torch
import triton
import triton.language as tl

SECTORS = 512


@triton.jit
def _mask_tile(logits_ptr, bits_ptr, row_indices_ptr, vocab_size, row_stride, row_bytes, SECTORS: tl.constexpr):
    tiles = tl.cdiv(vocab_size, SECTORS * 8)
    mask_row = (tl.program_id(0) // tiles).to(tl.int64)
    sectors = tl.program_id(0) % tiles * SECTORS + tl.arange(0, SECTORS)
    row = tl.load(row_indices_ptr + mask_row).to(tl.int64)
    bits = tl.load(bits_ptr + mask_row * row_bytes + sectors, mask=sectors < row_bytes, other=255).to(tl.int32)
    lanes = tl.arange(0, 8)[None, :]
    tokens = sectors[:, None] * 8 + lanes
    places = logits_ptr + row * row_stride + tokens
    changed = (bits != 255)[:, None] & (tokens < vocab_size)
    x = tl.load(places, mask=(bits != 0)[:, None] & changed, other=-float("inf"))
    admitted = (bits[:, None] >> lanes) & 1
    tl.store(places, tl.where(admitted == 0, -float("inf"), x), mask=changed)


def apply_grammar_bitmask(logits, bitmask, row_indices):
    vocab_size = logits.shape[1]
    num_masks, num_words = bitmask.shape
    sectors = min(SECTORS, triton.next_power_of_2(triton.cdiv(vocab_size, 8)))
    # One dimension: neighbouring programs work on neighbouring tiles of the same row.
    grid = (num_masks * triton.cdiv(vocab_size, sectors * 8),)
    _mask_tile[grid](
        logits, bitmask.view(torch.uint8), row_indices, vocab_size, logits.stride(0), 4 * num_words, SECTORS=sectors
    )
