"""A counter in scratch memory by atomics, finished by the program that comes last."""

import torch
import triton
import triton.language as tl


@triton.jit
def count(logits_ptr, ids_ptr, rank_ptr, total_ptr, arrived_ptr, V, stride, BLOCK: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    own = tl.load(logits_ptr + req * stride + tl.load(ids_ptr + req))
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + req * stride + at, mask=at < V, other=-float("inf"))
    tl.atomic_add(total_ptr + req, tl.sum((x > own).to(tl.int32)), sem="acq_rel", scope="gpu")
    tl.debug_barrier()
    if tl.atomic_add(arrived_ptr + req, 1, sem="acq_rel") == tl.num_programs(1) - 1:
        tl.store(rank_ptr + req, tl.atomic_add(total_ptr + req, 0).to(tl.int64) + 1)
        tl.atomic_xchg(arrived_ptr + req, 0)


def ranks(logits, token_ids, ranks):
    R, V = logits.shape
    scratch = torch.zeros((2, R), dtype=torch.int32, device=logits.device)
    total, arrived = scratch.unbind(0)
    count[(R, triton.cdiv(V, 512))](logits, token_ids, ranks, total, arrived, V, logits.stride(0), BLOCK=512)
