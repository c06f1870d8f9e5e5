"""vLLM's grammar masks, one logit for each request, with the launch parameters of its wrapper."""

import torch
import triton
from vllm.v1.worker.gpu.structured_outputs import GRAMMAR_BITMASK_BLOCK_SIZE, _apply_grammar_bitmask_kernel


def apply_grammar_bitmask(logits, bitmask, row_indices):
    rows, vocab = logits.shape
    offsets = torch.arange(rows + 1, dtype=torch.int32, device=logits.device)
    block = GRAMMAR_BITMASK_BLOCK_SIZE
    _apply_grammar_bitmask_kernel[(bitmask.shape[0], triton.cdiv(vocab, block))](
        logits,
        logits.stride(0),
        row_indices,
        offsets,
        bitmask,
        bitmask.stride(0),
        vocab,
        MASK_STRIDE=1,
        BLOCK_SIZE=block,
    )
