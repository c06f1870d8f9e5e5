"""Temperature: one program per request and 256 logits, which leaves at once where the request is greedy."""

import triton
import triton.language as tl


@triton.jit
def divide_block(logits_ptr, temperature_ptr, idx_mapping_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    divisor = tl.load(temperature_ptr + tl.load(idx_mapping_ptr + req))
    if divisor != 0.0:
        tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        logit_ptrs = logits_ptr + req * row_stride + tokens
        x = tl.load(logit_ptrs, mask=tokens < vocab_size)
        tl.store(logit_ptrs, x / divisor, mask=tokens < vocab_size)


def temperature(logits, temperature, idx_mapping):
    num_reqs, vocab_size = logits.shape
    grid = (num_reqs, triton.cdiv(vocab_size, 256))
    divide_block[grid](logits, temperature, idx_mapping, vocab_size, logits.stride(0), BLOCK=256)
