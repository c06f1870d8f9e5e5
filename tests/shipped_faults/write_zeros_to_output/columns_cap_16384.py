"""expect: wrong_result in heldout-20. Size limit: the grid has programs for at most 16384 columns: wider rows keep their tails."""



import triton
import triton.language as tl


@triton.jit
def zero_tile(
    out_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    num_choices,
    N,
    row_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    block = tl.program_id(0)
    in_use = block * BLOCK_M < tl.load(rows_in_use_ptr)
    if in_use & (tl.load(expert_ids_ptr + block) == -1):
        choices = tl.load(sorted_ids_ptr + block * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        inside = (choices < num_choices)[:, None] & (columns < N)[None, :]
        zeros = tl.zeros((BLOCK_M, BLOCK_N), out_ptr.dtype.element_ty)
        tl.store(out_ptr + choices[:, None] * row_stride + columns[None, :], zeros, mask=inside)


def write_zeros_to_output(out, sorted_token_ids, expert_ids, num_tokens_post_padded):
    rows, N = out.shape
    blocks = expert_ids.numel()
    block_m = sorted_token_ids.numel() // blocks
    block_n = 8192 // block_m  # however many rows a block has, a program clears 8192 values
    zero_tile[(blocks, min(triton.cdiv(N, block_n), 16384 // block_n))](
        out,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        rows,
        N,
        out.stride(0),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
    )
