"""Linear cross entropy that stores no logit: exponentials of a tile, relative to its maximum, and what scales them.

The first product leaves exponentials in 16 bits, with a maximum and a sum for each row of a tile. These give the lse
and one factor for each row of a tile, by which the products of both gradients scale their sums or operands. There is no
pass over logits, and at most 1 GiB of exponentials; the last chunk that adds to the gradient of the weight rounds it.
"""

import torch
import triton
import triton.language as tl

TILE = 128
MOST = 1 << 29


@triton.jit
def _count(targets_ptr, count_ptr, num_tokens, ignore_index, BLOCK: tl.constexpr):
    counted = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, num_tokens, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        targets = tl.load(targets_ptr + tokens, mask=tokens < num_tokens, other=ignore_index)
        counted += (targets != ignore_index).to(tl.int32)
    tl.store(count_ptr, tl.maximum(tl.sum(counted, axis=0), 1))


@triton.jit
def _exponentials(
    x_ptr,
    weight_ptr,
    targets_ptr,
    own_ptr,
    maxima_ptr,
    sums_ptr,
    e_ptr,
    num_tokens,
    vocab_size,
    hidden,
    WHOLE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile, tiles = tl.program_id(1), tl.num_programs(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_columns = rows < num_tokens, columns < vocab_size
    x_rows = tl.minimum(rows, num_tokens - 1)
    classes = tl.minimum(columns, vocab_size - 1)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        x_ptrs = x_ptr + x_rows[:, None] * hidden + depth[None, :]
        w_ptrs = weight_ptr + classes[:, None] * hidden + depth[None, :]
        if WHOLE:
            acc = tl.dot(tl.load(x_ptrs), tl.load(w_ptrs).T, acc)
        else:
            inside = (depth < hidden)[None, :]
            acc = tl.dot(tl.load(x_ptrs, mask=inside, other=0.0), tl.load(w_ptrs, mask=inside, other=0.0).T, acc)
    targets = tl.load(targets_ptr + rows, mask=in_rows, other=-1)
    is_own = columns[None, :] == targets[:, None]
    here = in_rows & (targets >= tile * BLOCK_N) & (targets < tl.minimum((tile + 1) * BLOCK_N, vocab_size))
    tl.store(own_ptr + rows, tl.sum(tl.where(is_own, acc, 0.0), axis=1), mask=here)
    acc = tl.where(in_columns[None, :], acc, -float("inf"))
    maxima = tl.max(acc, axis=1)
    e = tl.exp2((acc - maxima[:, None]) * 1.4426950408889634)
    tl.store(maxima_ptr + rows * tiles + tile, maxima, mask=in_rows)
    tl.store(sums_ptr + rows * tiles + tile, tl.sum(e, axis=1), mask=in_rows)
    e_ptrs = e_ptr + rows[:, None] * vocab_size + columns[None, :]
    tl.store(e_ptrs, e.to(e_ptr.dtype.element_ty), mask=in_rows[:, None] & in_columns[None, :])


@triton.jit
def _factors(
    targets_ptr, count_ptr, own_ptr, maxima_ptr, sums_ptr, losses_ptr, tiles, ignore_index, TILES: tl.constexpr
):
    """Puts the factor of a row of each tile in the place of its maximum."""
    row = tl.program_id(0)
    places = tl.arange(0, TILES)
    maxima = tl.load(maxima_ptr + row * tiles + places, mask=places < tiles, other=-float("inf"))
    sums = tl.load(sums_ptr + row * tiles + places, mask=places < tiles, other=0.0)
    counts = tl.load(targets_ptr + row) != ignore_index
    share = tl.where(counts, 1.0 / tl.load(count_ptr).to(tl.float32), 0.0)
    greatest = tl.max(maxima, axis=0)
    scaled = tl.exp(maxima - greatest)
    total = tl.sum(scaled * sums, axis=0)
    own = tl.load(own_ptr + row, mask=counts, other=0.0)
    tl.store(losses_ptr + row, tl.where(counts, (greatest + tl.log(total) - own) * share, 0.0))
    tl.store(maxima_ptr + row * tiles + places, scaled * (share / total), mask=places < tiles)


@triton.jit
def _gradient_of_x(
    e_ptr,
    factors_ptr,
    weight_ptr,
    targets_ptr,
    count_ptr,
    out_ptr,
    num_tokens,
    vocab_size,
    hidden,
    tiles,
    ignore_index,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_columns = rows < num_tokens, columns < hidden
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for tile in range(tiles):
        depth = tile * BLOCK_K + tl.arange(0, BLOCK_K)
        inside = depth < vocab_size
        e_mask = in_rows[:, None] & inside[None, :]
        e = tl.load(e_ptr + rows[:, None] * vocab_size + depth[None, :], mask=e_mask, other=0.0)
        w_mask = inside[:, None] & in_columns[None, :]
        w = tl.load(weight_ptr + depth[:, None] * hidden + columns[None, :], mask=w_mask, other=0.0)
        factors = tl.load(factors_ptr + rows * tiles + tile, mask=in_rows, other=0.0)
        acc += tl.dot(e, w) * factors[:, None]
    targets = tl.load(targets_ptr + rows, mask=in_rows, other=ignore_index)
    mask = (in_rows & (targets != ignore_index))[:, None] & in_columns[None, :]
    own = tl.load(weight_ptr + targets[:, None] * hidden + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    acc -= own / tl.load(count_ptr).to(tl.float32)
    out_ptrs = out_ptr + rows[:, None] * hidden + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows[:, None] & in_columns[None, :])


@triton.jit
def _gradient_of_weight(
    e_ptr,
    factors_ptr,
    x_ptr,
    targets_ptr,
    count_ptr,
    sums_ptr,
    out_ptr,
    num_tokens,
    vocab_size,
    hidden,
    tiles,
    ignore_index,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(1)
    classes = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_classes, in_columns = classes < vocab_size, columns < hidden
    share = 1.0 / tl.load(count_ptr).to(tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, num_tokens, BLOCK_K):
        tokens = start + tl.arange(0, BLOCK_K)
        inside = tokens < num_tokens
        e_mask = inside[:, None] & in_classes[None, :]
        e = tl.load(e_ptr + tokens[:, None] * vocab_size + classes[None, :], mask=e_mask, other=0.0)
        factors = tl.load(factors_ptr + tokens * tiles + tile, mask=inside, other=0.0)
        targets = tl.load(targets_ptr + tokens, mask=inside, other=ignore_index)
        targets = tl.where(targets == ignore_index, -1, targets)
        own = tl.where(classes[None, :] == targets[:, None], share, 0.0)
        d = (e.to(tl.float32) * factors[:, None] - own).to(e.dtype)
        x_mask = inside[:, None] & in_columns[None, :]
        x = tl.load(x_ptr + tokens[:, None] * hidden + columns[None, :], mask=x_mask, other=0.0)
        acc = tl.dot(d.T, x, acc)
    places = classes[:, None] * hidden + columns[None, :]
    mask = in_classes[:, None] & in_columns[None, :]
    if not FIRST:
        acc += tl.load(sums_ptr + places, mask=mask, other=0.0)
    if LAST:
        tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        tl.store(sums_ptr + places, acc, mask=mask)


@triton.jit
def _add_losses(losses_ptr, loss_ptr, num_tokens, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, num_tokens, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        total += tl.load(losses_ptr + tokens, mask=tokens < num_tokens, other=0.0)
    tl.store(loss_ptr, tl.sum(total, axis=0))


def linear_cross_entropy(x, weight, targets, ignore_index, loss, grad_x, grad_weight):
    num_tokens, hidden = x.shape
    vocab_size = weight.shape[0]
    tiles = triton.cdiv(vocab_size, TILE)
    chunk = min(num_tokens, max(TILE, min(4096, MOST // vocab_size) // TILE * TILE))
    chunks = triton.cdiv(num_tokens, chunk)

    def floats(*shape):
        return torch.empty(shape, dtype=torch.float32, device=x.device)

    count = torch.empty((1,), dtype=torch.int32, device=x.device)
    losses, own = floats(num_tokens), floats(chunk)
    maxima, parts = floats(chunk, tiles), floats(chunk, tiles)
    e = torch.empty((chunk, vocab_size), dtype=x.dtype, device=x.device)
    sums = floats(vocab_size, hidden) if chunks > 1 else losses
    _count[(1,)](targets, count, num_tokens, ignore_index, BLOCK=4096, num_warps=8)
    for number in range(chunks):
        first = number * chunk
        size = min(chunk, num_tokens - first)
        rows, classes = x[first : first + size], targets[first : first + size]
        heights, widths = triton.cdiv(size, 128), triton.cdiv(hidden, 128)
        # Programs of all rows of a tile are neighbours: its weights are read from memory once.
        _exponentials[(heights, tiles)](
            rows,
            weight,
            classes,
            own,
            maxima,
            parts,
            e,
            size,
            vocab_size,
            hidden,
            WHOLE=hidden % 64 == 0,
            BLOCK_M=128,
            BLOCK_N=TILE,
            BLOCK_K=64,
            num_warps=8,
            num_stages=3,
        )
        _factors[(size,)](
            classes,
            count,
            own,
            maxima,
            parts,
            losses[first:],
            tiles,
            ignore_index,
            TILES=triton.next_power_of_2(tiles),
        )
        _gradient_of_x[(heights, widths)](
            e,
            maxima,
            weight,
            classes,
            count,
            grad_x[first : first + size],
            size,
            vocab_size,
            hidden,
            tiles,
            ignore_index,
            BLOCK_M=128,
            BLOCK_N=128,
            BLOCK_K=TILE,
            num_warps=8,
            num_stages=2,
        )
        _gradient_of_weight[(widths, tiles)](
            e,
            maxima,
            rows,
            classes,
            count,
            sums,
            grad_weight,
            size,
            vocab_size,
            hidden,
            tiles,
            ignore_index,
            FIRST=number == 0,
            LAST=number == chunks - 1,
            BLOCK_M=TILE,
            BLOCK_N=128,
            BLOCK_K=64,
            num_warps=8,
            num_stages=3,
        )
    _add_losses[(1,)](losses, loss, num_tokens, BLOCK=4096, num_warps=8)
