"""vLLM's recovered tokens, with the launch parameters of its wrapper and its limit on drafts.

The engine multiplies by reciprocals of the noise. A kernel of ours computes them, and its time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.v1.sample.rejection_sampler import MAX_SPEC_LEN, sample_recovered_tokens_kernel


@triton.jit
def reciprocals(noise, inverse, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(inverse + i, 1.0 / tl.load(noise + i, mask=i < n, other=1.0), mask=i < n)


def sample_recovered_tokens(
    draft_token_ids, draft_probs, target_probs, noise, cu_num_draft_tokens, recovered_token_ids
):
    inverse = torch.empty_like(noise)
    reciprocals[(triton.cdiv(noise.numel(), 4096),)](noise, inverse, noise.numel(), 4096)
    longest = min(MAX_SPEC_LEN, draft_token_ids.shape[0])
    sample_recovered_tokens_kernel[(noise.shape[0], longest)](
        recovered_token_ids,
        cu_num_draft_tokens[1:],
        draft_token_ids,
        draft_probs,
        target_probs,
        inverse,
        noise.shape[1],
        BLOCK_SIZE=8192,
        NO_DRAFT_PROBS=draft_probs is None,
        USE_FP64_GUMBEL=False,
    )
