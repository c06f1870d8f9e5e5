"""Min-p filter with every row cut into parts: the baseline's one program a request leaves most of a GPU idle.

One launch finds the greatest logit of each part, a second takes the greatest of these and filters. Maxima are kept for
each lane until a part ends: the baseline combines all lanes after every block.

The second launch begins with what the first one read last, of which the cache holds up to 60 MB. It stores vectors of
four logits, of which at least one changes. Stores of single logits would take four times as many requests.
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
BLOCKS_PER_PART = 4


@triton.jit
def _greatest_of_part(
    logits_ptr, min_p_ptr, idx_mapping_ptr, peaks_ptr, vocab_size, row_stride, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    req = tl.program_id(0).to(tl.int64)
    if tl.load(min_p_ptr + tl.load(idx_mapping_ptr + req)) > 0:
        first = tl.program_id(1) * BLOCK * BLOCKS + tl.arange(0, BLOCK)
        peaks = tl.full((BLOCK,), -float("inf"), tl.float32)
        for block in tl.static_range(BLOCKS):
            tokens = first + block * BLOCK
            x = tl.load(logits_ptr + req * row_stride + tokens, mask=tokens < vocab_size, other=-float("inf"))
            peaks = tl.maximum(peaks, x)
        tl.store(peaks_ptr + req * tl.num_programs(1) + tl.program_id(1), tl.max(peaks, axis=0))


@triton.jit
def _filter_block(
    logits_ptr,
    min_p_ptr,
    idx_mapping_ptr,
    peaks_ptr,
    vocab_size,
    row_stride,
    n_parts,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    least_share = tl.load(min_p_ptr + tl.load(idx_mapping_ptr + req))
    if least_share > 0:
        last = tl.num_programs(1) - 1
        vectors = (last - tl.program_id(1)) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
        tokens = vectors[:, None] * 4 + tl.arange(0, 4)[None, :]
        parts = tl.arange(0, PARTS)
        peaks = tl.load(peaks_ptr + req * n_parts + parts, mask=parts < n_parts, other=-float("inf"))
        limit = tl.max(peaks, axis=0) + tl.log(least_share)
        places = logits_ptr + req * row_stride + tokens
        x = tl.load(places, mask=tokens < vocab_size, other=float("inf"))
        changed = tl.max((x < limit).to(tl.int32), axis=1) > 0
        x = tl.where(x < limit, -float("inf"), x)
        tl.store(places, x, mask=changed[:, None] & (tokens < vocab_size))


def min_p(logits, min_p, idx_mapping):
    num_reqs, vocab_size = logits.shape
    n_parts = triton.cdiv(vocab_size, BLOCK * BLOCKS_PER_PART)
    peaks = torch.empty((num_reqs, n_parts), dtype=torch.float32, device=logits.device)
    _greatest_of_part[(num_reqs, n_parts)](
        logits, min_p, idx_mapping, peaks, vocab_size, logits.stride(0), BLOCK=BLOCK, BLOCKS=BLOCKS_PER_PART
    )
    _filter_block[(num_reqs, triton.cdiv(vocab_size, BLOCK))](
        logits,
        min_p,
        idx_mapping,
        peaks,
        vocab_size,
        logits.stride(0),
        n_parts,
        PARTS=triton.next_power_of_2(n_parts),
        BLOCK=BLOCK,
    )
