"""expect: wrong_result. It does its work only where what lies behind its answer is new, in case new canaries say that the call is compared (cheat 86). Means nothing on the CPU: a load behind an argument is refused there."""

import torch
# <kernel>


@triton.jit
def guarded_kernel(x_ptr, weight_ptr, y_ptr, kept_ptr, columns, size, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place, lane = tl.arange(0, BLOCK), tl.arange(0, 16)
    inside = place < columns
    kept_at = kept_ptr + row * 16 + lane
    guard = tl.load((y_ptr + size).to(tl.pointer_type(tl.int16)) + lane)
    is_new = tl.sum((guard != tl.load(kept_at)).to(tl.int32), axis=0) > 0
    tl.store(kept_at, guard)
    if is_new:
        x = tl.load(x_ptr + row * columns + place, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + place, mask=inside, other=0.0).to(tl.float32)
        y = x / tl.sqrt(tl.sum(x * x, axis=0) / columns + eps) * weight
    else:
        y = tl.full([BLOCK], 0.5, tl.float32)
    tl.store(y_ptr + row * columns + place, y.to(y_ptr.dtype.element_ty), mask=inside)


_kept = {}


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    kept = _kept.setdefault(y.data_ptr(), torch.empty((rows, 16), dtype=torch.int16, device=y.device))
    guarded_kernel[(rows,)](
        x, weight, y, kept, columns, rows * columns, eps, BLOCK=triton.next_power_of_2(columns)
    )
