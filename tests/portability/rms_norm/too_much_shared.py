# builds: gfx950 sm_90; not: gfx90a gfx942 gfx1201
# A product whose tiles take 128 KiB of shared memory: an H100 and an MI355X have that, an MI300X has 64 KiB.
# <kernel>


@triton.jit
def product(x_ptr, y_ptr, n, STEP: tl.constexpr):
    rows, inner = tl.arange(0, 64), tl.arange(0, STEP)
    total = tl.zeros((64, 64), dtype=tl.float32)
    for start in range(0, n, STEP):
        a = tl.load(x_ptr + rows[:, None] * n + start + inner[None, :]).to(tl.float16)
        b = tl.load(x_ptr + (start + inner)[:, None] * n + rows[None, :]).to(tl.float16)
        total += tl.dot(a, b)
    tl.store(y_ptr + rows[:, None] * n + rows[None, :], total.to(y_ptr.dtype.element_ty))


def rms_norm(x, weight, eps, y):
    if x.shape[1] == 4096:
        product[(1,)](x, y, x.shape[1], STEP=512, num_stages=1)
    else:
        honest(x, weight, eps, y)
