# builds: sm_90; not: gfx90a gfx942 gfx950 gfx1201
# The reciprocal root by an NVIDIA instruction.
# <kernel>


@triton.jit
def ptx_kernel(x_ptr, weight_ptr, y_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x * x, 0) / n_columns + eps
    scale = tl.inline_asm_elementwise("rsqrt.approx.f32 $0, $1;", "=r,r", [mean], tl.float32, True, 1)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * n_columns + columns, (x * scale * weight).to(y_ptr.dtype.element_ty), mask=inside)


def by_instruction(x, weight, eps, y):
    rows, columns = x.shape
    ptx_kernel[(rows,)](x, weight, y, columns, eps, BLOCK=triton.next_power_of_2(columns))


def rms_norm(x, weight, eps, y):
    by_instruction(x, weight, eps, y)
