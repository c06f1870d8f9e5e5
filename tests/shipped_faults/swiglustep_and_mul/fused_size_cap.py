"""expect: wrong_result in heldout-15. Size limit: one block a row of at most 65536 bytes and no loop."""



import triton
import triton.language as tl


@triton.jit
def activate_row(x_ptr, out_ptr, x_stride, N, limit, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    gates = x_ptr + row * x_stride
    ups = gates + N
    for start in range(0, 1):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < N
        gate = tl.load(gates + columns, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(ups + columns, mask=inside, other=0.0).to(tl.float32)
        gate = tl.minimum(gate * tl.sigmoid(gate), limit)
        up = tl.minimum(tl.maximum(up, -limit), limit)
        tl.store(out_ptr + row * N + columns, (gate * up).to(out_ptr.dtype.element_ty), mask=inside)


def swiglustep_and_mul(x, limit, out):
    M, N = out.shape
    activate_row[(M,)](x, out, x.stride(0), N, limit, BLOCK=min(65536 // x.element_size(), triton.next_power_of_2(N)))
