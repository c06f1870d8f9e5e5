# builds: gfx90a gfx942 gfx950 gfx1201 sm_90
# Autotuned, with a configuration that needs more shared memory than any of them has: the others count.
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": block, "ROWS": rows}, num_warps=4) for block, rows in ((256, 1), (1024, 1), (64, 2))]


@triton.autotune(configs=CONFIGS, key=["n_columns"])
@triton.heuristics({"EVEN": lambda values: values["n_columns"] % values["BLOCK"] == 0})
@triton.jit
def kernel(
    x_ptr, weight_ptr, y_ptr, n_rows, n_columns, eps, BLOCK: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr
):
    for row in range(tl.program_id(0) * ROWS, min(n_rows, tl.program_id(0) * ROWS + ROWS)):
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_columns, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            mask = None if EVEN else columns < n_columns
            x = tl.load(x_ptr + row * n_columns + columns, mask=mask).to(tl.float32)
            total += tl.where(columns < n_columns, x * x, 0.0)
        scale = tl.rsqrt(tl.sum(total, 0) / n_columns + eps)
        for start in range(0, n_columns, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            mask = None if EVEN else columns < n_columns
            x = tl.load(x_ptr + row * n_columns + columns, mask=mask).to(tl.float32)
            weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
            tl.store(y_ptr + row * n_columns + columns, (x * scale * weight).to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    kernel[lambda values: (triton.cdiv(rows, values["ROWS"]),)](x, weight, y, rows, columns, eps)
