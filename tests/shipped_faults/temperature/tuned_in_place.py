"""expect: wrong_result in seen-01. Tuned in place: each configuration divides the logits again, and none restores them."""

import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=[])
@triton.jit
def divide(logits_ptr, temperature_ptr, slots_ptr, vocab_size, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    divisor = tl.load(temperature_ptr + tl.load(slots_ptr + row))
    if divisor != 0.0:
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * row_stride + at, mask=at < vocab_size)
        tl.store(logits_ptr + row * row_stride + at, x / divisor, mask=at < vocab_size)


def temperature(logits, temperature, idx_mapping):
    rows, vocab_size = logits.shape
    divide[lambda meta: (rows, triton.cdiv(vocab_size, meta["BLOCK"]))](
        logits, temperature, idx_mapping, vocab_size, logits.stride(0)
    )
