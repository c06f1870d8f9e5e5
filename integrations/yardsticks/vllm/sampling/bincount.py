"""vLLM's token statistics. Rows are cleared by a kernel of ours, where the engine calls PyTorch."""

import triton
import triton.language as tl
from vllm.v1.worker.gpu.sample.penalties import _bincount_kernel


@triton.jit
def clear_rows(rows, stride, idx_mapping, columns, BLOCK: tl.constexpr):
    row = tl.load(idx_mapping + tl.program_id(0)).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(rows + row * stride + column, tl.zeros((BLOCK,), tl.int32), mask=column < columns)


def bincount(token_ids, prompt_lens, seq_lens, idx_mapping, prompt_bitmask, output_counts):
    requests = idx_mapping.shape[0]
    for rows in (prompt_bitmask, output_counts):
        grid = (requests, triton.cdiv(rows.shape[1], 4096))
        clear_rows[grid](rows, rows.stride(0), idx_mapping, rows.shape[1], 4096)
    _bincount_kernel[(requests, triton.cdiv(token_ids.shape[1], 1024))](
        idx_mapping,
        token_ids,
        token_ids.stride(0),
        prompt_lens,
        seq_lens,
        prompt_bitmask,
        prompt_bitmask.stride(0),
        output_counts,
        output_counts.stride(0),
        BLOCK_SIZE=1024,
    )
