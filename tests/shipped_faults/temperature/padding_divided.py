"""expect: out_of_bounds. Padding written: rows are divided up to the next one, as one flat buffer."""

import triton
import triton.language as tl


@triton.jit
def divide_block(logits_ptr, temperature_ptr, idx_mapping_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    divisor = tl.load(temperature_ptr + tl.load(idx_mapping_ptr + req))
    if divisor != 0.0:
        tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        logit_ptrs = logits_ptr + req * row_stride + tokens
        width = tl.where(req + 1 < tl.num_programs(0), row_stride, vocab_size)
        x = tl.load(logit_ptrs, mask=tokens < width)
        tl.store(logit_ptrs, x / divisor, mask=tokens < width)


def temperature(logits, temperature, idx_mapping):
    num_reqs, vocab_size = logits.shape
    grid = (num_reqs, triton.cdiv(logits.stride(0), 256))
    divide_block[grid](logits, temperature, idx_mapping, vocab_size, logits.stride(0), BLOCK=256)
