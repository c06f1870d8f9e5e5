"""expect: wrong_result in heldout-30. Overflow: the maximum of a row stays that of its first tile of keys."""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def attend_keys(
    query,
    k_ptr,
    v_ptr,
    greatest,
    total,
    acc,
    rows,
    first,
    end,
    S,
    scale,
    D: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEYS: tl.constexpr,
    DIAGONAL: tl.constexpr,
):
    """Take the keys first … end - 1 into the sums of a tile of queries."""
    columns = tl.arange(0, COLUMNS)
    for start in range(first, end, KEYS):
        keys = start + tl.arange(0, KEYS)
        place = keys[:, None] * D + columns[None, :]
        if DIAGONAL:
            mask = (keys < S)[:, None] & (columns < D)[None, :]
            key = tl.load(k_ptr + place, mask=mask, other=0.0)
            value = tl.load(v_ptr + place, mask=mask, other=0.0)
        elif COLUMNS == D:
            key = tl.load(k_ptr + place)
            value = tl.load(v_ptr + place)
        else:
            key = tl.load(k_ptr + place, mask=(columns < D)[None, :], other=0.0)
            value = tl.load(v_ptr + place, mask=(columns < D)[None, :], other=0.0)
        scores = tl.dot(query, tl.trans(key))
        if DIAGONAL:
            scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
        higher = tl.where(greatest == float("-inf"), tl.max(scores, axis=1) * scale, greatest)
        weights = tl.exp2(scores * scale - higher[:, None])
        kept = tl.exp2(greatest - higher)
        total = total * kept + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(value.dtype), value, acc * kept[:, None])
        greatest = higher
    return greatest, total, acc


@triton.jit
def attend_tile(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    heads,
    S,
    D: tl.constexpr,
    COLUMNS: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    head = (tl.program_id(0) % heads).to(tl.int64)
    tile = tl.cdiv(S, QUERIES) - 1 - tl.program_id(0) // heads
    q_ptr += head * S * D
    k_ptr += head * S * D
    v_ptr += head * S * D
    out_ptr += head * S * D
    rows, columns = tile * QUERIES + tl.arange(0, QUERIES), tl.arange(0, COLUMNS)
    place = rows[:, None] * D + columns[None, :]
    mask = (rows < S)[:, None] & (columns < D)[None, :]
    query = tl.load(q_ptr + place, mask=mask, other=0.0)
    greatest = tl.full((QUERIES,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    acc = tl.zeros((QUERIES, COLUMNS), dtype=tl.float32)
    seen_by_all = tile * QUERIES // KEYS * KEYS
    end = tl.minimum((tile + 1) * QUERIES, S)
    greatest, total, acc = attend_keys(
        query, k_ptr, v_ptr, greatest, total, acc, rows, 0, seen_by_all, S, scale, D, COLUMNS, KEYS, False
    )
    greatest, total, acc = attend_keys(
        query, k_ptr, v_ptr, greatest, total, acc, rows, seen_by_all, end, S, scale, D, COLUMNS, KEYS, True
    )
    tl.store(out_ptr + place, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=mask)


def attend_causally(q, k, v, out):
    B, H, S, D = q.shape
    heads = B * H
    columns = triton.next_power_of_2(D)
    longest = max(16, triton.next_power_of_2(S))
    if torch.version.hip:
        queries, keys, stages = 128, 64 if columns <= 64 else 32, 2
    else:
        queries, keys, stages = 128, 128 if columns <= 64 else 64, 3 if columns <= 128 else 2
    if triton.cdiv(S, queries) * heads < 264:
        queries = 64
    queries, keys = min(queries, longest), min(keys, longest)
    attend_tile[(triton.cdiv(S, queries) * heads,)](
        q,
        k,
        v,
        out,
        D**-0.5 * LOG2_E,
        heads,
        S,
        D=D,
        COLUMNS=columns,
        QUERIES=queries,
        KEYS=keys,
        num_warps=8 if queries == 128 else 4,
        num_stages=stages,
    )
