"""expect: launch_error in seen-01. Offsets of 32 bits: the upper half of an address is lost."""

import triton
import triton.language as tl

TILE = 1024
STRIP = 65536


@triton.jit
def copy_strip(src_ptrs_ptr, dst_ptrs_ptr, sizes_ptr, WIDTH: tl.constexpr, STRIP: tl.constexpr):
    copy = tl.program_id(0)
    source = tl.load(src_ptrs_ptr + copy).to(tl.int32).to(tl.int64).to(tl.pointer_type(tl.uint8))
    target = tl.load(dst_ptrs_ptr + copy).to(tl.pointer_type(tl.uint8))
    size = tl.load(sizes_ptr + copy)
    begin = tl.program_id(1) * STRIP
    for first in range(begin, tl.minimum(begin + STRIP, size), WIDTH):
        i = first + tl.arange(0, WIDTH)
        tl.store(target + i, tl.load(source + i, mask=i < size), mask=i < size)


def batch_memcpy(source, destination, src_ptrs, dst_ptrs, sizes):
    num_copies, row_bytes = source.shape
    grid = num_copies, triton.cdiv(row_bytes, STRIP)
    copy_strip[grid](src_ptrs, dst_ptrs, sizes, WIDTH=TILE, STRIP=STRIP)
