"""expect: wrong_result in heldout-17. Sentinel: the id before the first token counts as 0, and a state is dropped."""

import triton
import triton.language as tl


@triton.jit
def scan_tile(
    x_ptr,
    dt_ptr,
    decay_ptr,
    C_ptr,
    CB_ptr,
    prev_ptr,
    D_ptr,
    z_ptr,
    seq_idx_ptr,
    out_ptr,
    seq_len,
    num_groups,
    head_dim,
    state_dim,
    chunk_size,
    BLOCK_M: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    group = head // (num_heads // num_groups)
    num_chunks = tl.cdiv(seq_len, chunk_size)
    row = (tl.program_id(0) // num_chunks).to(tl.int64)
    chunk = tl.program_id(0) % num_chunks
    tiles_p = tl.cdiv(head_dim, BLOCK_P)
    steps = tl.program_id(2) // tiles_p * BLOCK_M + tl.arange(0, BLOCK_M)
    values = tl.program_id(2) % tiles_p * BLOCK_P + tl.arange(0, BLOCK_P)
    length = tl.minimum(chunk_size, seq_len - chunk * chunk_size)
    inside = steps < length
    first = row * seq_len + chunk * chunk_size
    tokens = first + steps
    dt_row = ((row * num_heads + head) * num_chunks + chunk) * chunk_size
    decay = tl.load(decay_ptr + dt_row + steps, mask=inside, other=0.0)

    # What the state before this chunk still gives.
    state_row = ((row * num_chunks + chunk) * num_heads + head) * head_dim
    acc = tl.zeros((BLOCK_M, BLOCK_P), tl.float32)
    for start in range(0, state_dim, BLOCK_K):
        n = start + tl.arange(0, BLOCK_K)
        C_mask = inside[:, None] & (n < state_dim)[None, :]
        C_rows = (tokens * num_groups + group)[:, None] * state_dim
        C = tl.load(C_ptr + C_rows + n[None, :], mask=C_mask, other=0.0)
        prev_mask = (n < state_dim)[:, None] & (values < head_dim)[None, :]
        prev = tl.load(prev_ptr + (state_row + values)[None, :] * state_dim + n[:, None], mask=prev_mask, other=0.0)
        acc += tl.dot(C, prev, input_precision="ieee")
    kept = tl.exp(decay)
    ids = tokens
    if seq_idx_ptr is not None:
        ids = tl.load(seq_idx_ptr + tokens, mask=inside, other=-1)
        before = tl.load(seq_idx_ptr + first - 1, mask=chunk > 0, other=0)
        kept = tl.where(ids == before, kept, 0.0)
    acc *= kept[:, None]

    # What the tokens of the chunk itself give.
    CB_row = ((row * num_chunks + chunk) * num_groups + group) * chunk_size
    reach = tl.minimum(length, (tl.program_id(2) // tiles_p + 1) * BLOCK_M)
    for start in range(0, reach, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_inside = k < length
        CB_mask = inside[:, None] & k_inside[None, :]
        CB = tl.load(CB_ptr + (CB_row + steps)[:, None] * chunk_size + k[None, :], mask=CB_mask, other=0.0)
        decay_k = tl.load(decay_ptr + dt_row + k, mask=k_inside, other=0.0)
        dt_k = tl.load(dt_ptr + dt_row + k, mask=k_inside, other=0.0)
        reached = k[None, :] <= steps[:, None]
        if seq_idx_ptr is not None:
            ids_k = tl.load(seq_idx_ptr + first + k, mask=k_inside, other=-2)
            reached = reached & (ids[:, None] == ids_k[None, :])
        weights = tl.where(reached, CB * tl.exp(decay[:, None] - decay_k[None, :]) * dt_k[None, :], 0.0)
        x_rows = ((first + k) * num_heads + head)[:, None] * head_dim
        x_mask = k_inside[:, None] & (values < head_dim)[None, :]
        x = tl.load(x_ptr + x_rows + values[None, :], mask=x_mask, other=0.0)
        acc += tl.dot(weights.to(x.dtype), x, input_precision="ieee")

    places = (tokens * num_heads + head)[:, None] * head_dim + values[None, :]
    mask = inside[:, None] & (values < head_dim)[None, :]
    if D_ptr is not None:
        acc += tl.load(D_ptr + head) * tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    if z_ptr is not None:
        z = tl.load(z_ptr + places, mask=mask, other=0.0).to(tl.float32)
        acc *= z / (1.0 + tl.exp(-z))
    tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=mask)


def ssd_chunk_scan(x, dt, dA_cumsum, C, CB, prev_states, D, z, seq_idx, out):
    batch, seq_len, num_heads, head_dim = x.shape
    num_groups, state_dim = C.shape[2:]
    num_chunks, chunk_size = dt.shape[2:]
    # float32 operands take twice the memory, and their products no matrix units.
    block = 32 if x.element_size() == 4 else 64
    tiles = triton.cdiv(min(seq_len, chunk_size), block) * triton.cdiv(head_dim, block)
    scan_tile[(batch * num_chunks, num_heads, tiles)](
        x,
        dt,
        dA_cumsum,
        C,
        CB,
        prev_states,
        D,
        z,
        seq_idx,
        out,
        seq_len,
        num_groups,
        head_dim,
        state_dim,
        chunk_size,
        BLOCK_M=block,
        BLOCK_P=block,
        BLOCK_K=32,
    )
