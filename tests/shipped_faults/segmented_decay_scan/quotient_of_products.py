"""expect: wrong_result in heldout-14. Underflow: a state is the product of all decays times a sum of quotients, which are no numbers."""

import triton
import triton.language as tl


@triton.jit
def scan_channels(x_ptr, decay_ptr, resets_ptr, out_ptr, T, D, CHANNELS: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    inside = channels < D
    product = tl.full((CHANNELS,), 1.0, dtype=tl.float32)
    quotients = tl.zeros((CHANNELS,), dtype=tl.float32)
    for token in range(T):
        place = (batch * T + token) * D + channels
        decay = tl.load(decay_ptr + place, mask=inside, other=1.0)
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        reset = tl.load(resets_ptr + batch * T + token)
        product = tl.where(reset, 1.0, product * decay)
        quotients = tl.where(reset, x, quotients + x / product)
        tl.store(out_ptr + place, (product * quotients).to(out_ptr.dtype.element_ty), mask=inside)


def scan_segments(x, decay, resets, out):
    B, T, D = x.shape
    scan_channels[(triton.cdiv(D, 64), B)](x, decay, resets, out, T, D, CHANNELS=64)
