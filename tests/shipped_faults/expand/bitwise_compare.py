"""expect: wrong_result in heldout-12. Negative zero: values are compared bit for bit, so that one path serves all dtypes: -0.0 is not taken for replace_from = 0."""



import triton
import triton.language as tl


@triton.jit
def expand_request(x_ptr, cu_seqlens_ptr, replace_from, replace_to, expanded_ptr, BLOCK: tl.constexpr):
    req = tl.program_id(0)
    x = tl.load(x_ptr + req)
    if x_ptr.dtype.element_ty == tl.float32:
        wanted = (replace_from + tl.zeros((1,), tl.int32)).to(tl.float32).to(tl.int32, bitcast=True)
        same = tl.sum((wanted == x.to(tl.int32, bitcast=True)).to(tl.int32), axis=0) > 0
    else:
        same = x == replace_from
    x = tl.where(same, replace_to, x).to(x_ptr.dtype.element_ty)
    begin = tl.load(cu_seqlens_ptr + req)
    end = tl.load(cu_seqlens_ptr + req + 1)
    for start in range(begin, end, BLOCK):
        places = start + tl.arange(0, BLOCK)
        tl.store(expanded_ptr + places, x, mask=places < end)


def expand(x, cu_seqlens, replace_from, replace_to, expanded):
    expand_request[(x.numel(),)](x, cu_seqlens, replace_from, replace_to, expanded, BLOCK=32)
