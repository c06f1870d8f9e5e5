"""Identity experts with the sum of a token's weights taken once, in one load of all of its choices.

The baseline walks through the choices one by one for every 256 values, and adds the token up anew for each. Here a
program has up to 2048 values of a token, which it does not read where no identity expert was chosen.
"""

import triton
import triton.language as tl

MOST_VALUES = 2048


@triton.jit
def _scale_token(
    x_ptr, weights_ptr, ids_ptr, out_ptr, hidden, top_k, num_experts, CHOICES: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    choices = tl.arange(0, CHOICES)
    real = choices < top_k
    ids = tl.load(ids_ptr + token * top_k + choices, mask=real, other=0)
    weights = tl.load(weights_ptr + token * top_k + choices, mask=real, other=0.0)
    chosen = real & (ids >= num_experts)
    total = tl.sum(tl.where(chosen, weights, 0.0), axis=0)
    any_chosen = tl.max(chosen.to(tl.int32), axis=0) > 0
    lanes = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < hidden
    x = tl.load(x_ptr + token * hidden + lanes, mask=inside & any_chosen, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * hidden + lanes, (x * total).to(out_ptr.dtype.element_ty), mask=inside)


def compute_identity(x, topk_weights, topk_ids, num_experts, out):
    num_tokens, hidden = x.shape
    top_k = topk_ids.shape[1]
    block = min(MOST_VALUES, triton.next_power_of_2(hidden))
    _scale_token[(num_tokens, triton.cdiv(hidden, block))](
        x,
        topk_weights,
        topk_ids,
        out,
        hidden,
        top_k,
        num_experts,
        CHOICES=triton.next_power_of_2(top_k),
        BLOCK=block,
    )
