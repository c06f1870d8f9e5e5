"""Temperature in tiles of 2048 logits: each thread of four warps has four vectors of 16 bytes on the way.

The baseline's 256 logits give a thread two of 4 bytes, too few to keep memory busy. A tile has one reciprocal.
"""

import triton
import triton.language as tl


@triton.jit
def _divide_tile(logits_ptr, temperature_ptr, idx_mapping_ptr, vocab_size, row_stride, TILE: tl.constexpr):
    tiles = tl.cdiv(vocab_size, TILE)
    req = (tl.program_id(0) // tiles).to(tl.int64)
    divisor = tl.load(temperature_ptr + tl.load(idx_mapping_ptr + req))
    if divisor != 0.0:
        tokens = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
        places = logits_ptr + req * row_stride + tokens
        x = tl.load(places, mask=tokens < vocab_size)
        tl.store(places, x * (1.0 / divisor), mask=tokens < vocab_size)


def temperature(logits, temperature, idx_mapping):
    num_reqs, vocab_size = logits.shape
    tile = min(2048, triton.next_power_of_2(vocab_size))
    # One dimension: neighbouring programs work on neighbouring tiles of the same row.
    grid = (num_reqs * triton.cdiv(vocab_size, tile),)
    _divide_tile[grid](logits, temperature, idx_mapping, vocab_size, logits.stride(0), TILE=tile)
