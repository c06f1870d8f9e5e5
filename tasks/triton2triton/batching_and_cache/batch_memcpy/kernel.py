"""Byte copies by address: one program per copy, 1024 bytes at a time, one byte an element."""

import triton
import triton.language as tl

TILE = 1024


@triton.jit
def copy_bytes(src_ptrs_ptr, dst_ptrs_ptr, sizes_ptr, WIDTH: tl.constexpr):
    copy = tl.program_id(0)
    source = tl.load(src_ptrs_ptr + copy).to(tl.pointer_type(tl.uint8))
    target = tl.load(dst_ptrs_ptr + copy).to(tl.pointer_type(tl.uint8))
    size = tl.load(sizes_ptr + copy)
    for first in range(0, size, WIDTH):
        i = first + tl.arange(0, WIDTH)
        tl.store(target + i, tl.load(source + i, mask=i < size), mask=i < size)


def batch_memcpy(source, destination, src_ptrs, dst_ptrs, sizes):
    copy_bytes[(sizes.numel(),)](src_ptrs, dst_ptrs, sizes, WIDTH=TILE)
