"""vLLM's tokens of prefills.

Where a prompt ends in this step, the engine writes 0 as the token after it, and the task leaves it as it is. So the
engine writes to another tensor, from which a kernel of ours copies the other ones; its time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.v1.worker.gpu.input_batch import prepare_prefill_inputs as engine_prepare


@triton.jit
def keep_next(slots, computed, offsets, prefill_lens, tokens, next_tokens, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    slot = tl.load(slots + i, mask=inside, other=0)
    query = tl.load(offsets + i + 1, mask=inside, other=0) - tl.load(offsets + i, mask=inside, other=0)
    done = tl.load(computed + slot, mask=inside, other=0) + query
    goes_on = inside & (done < tl.load(prefill_lens + slot, mask=inside, other=0))
    tl.store(next_tokens + slot, tl.load(tokens + slot, mask=goes_on, other=0), mask=goes_on)


def prepare_prefill_inputs(
    token_ids, prefill_lens, num_computed_tokens, cu_seqlens, idx_mapping, input_ids, next_prefill_tokens
):
    tokens = torch.empty_like(next_prefill_tokens)
    engine_prepare(input_ids, tokens.view(1, -1), idx_mapping, cu_seqlens, token_ids, prefill_lens, num_computed_tokens)
    requests = idx_mapping.shape[0]
    keep_next[(triton.cdiv(requests, 256),)](
        idx_mapping, num_computed_tokens, cu_seqlens, prefill_lens, tokens, next_prefill_tokens, requests, 256
    )
