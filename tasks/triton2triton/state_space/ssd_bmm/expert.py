"""Products within chunks: the tiles of a chunk are neighbours in the grid, and those above the diagonal only zeros.

The baseline's grid has chunks first and tiles last: by the time that the next tile of a chunk runs, its rows have left
the cache, and with chunks of 256 tokens a and b come from memory four times. Here all tiles of a chunk and group come
one after the other. Where the product is causal, tiles above the diagonal load and multiply nothing; with tiles of 64
they are 6 of 16 in a chunk of 256. Tiles are 64 × 64, which wgmma multiplies: 16-bit operands in steps of 64, and
float32 in steps of 32, as three TF32 products on NVIDIA. Whole tiles of whole vectors are loaded without masks.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _product_tile(
    a_ptr,
    b_ptr,
    out_ptr,
    token_stride,
    seq_len,
    num_chunks,
    num_groups,
    state_dim,
    chunk_size,
    tiles,
    CAUSAL: tl.constexpr,
    WHOLE: tl.constexpr,
    TILE: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One tile of one chunk and group. WHOLE: no chunk ends within a tile, and no row within a step."""
    tile = tl.program_id(0) % (tiles * tiles)
    group = tl.program_id(0) // (tiles * tiles) % num_groups
    row_chunk = tl.program_id(0) // (tiles * tiles) // num_groups
    row, chunk = (row_chunk // num_chunks).to(tl.int64), row_chunk % num_chunks
    m = tile // tiles * TILE + tl.arange(0, TILE)
    k = tile % tiles * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    if not CAUSAL or tile % tiles <= tile // tiles:
        length = tl.minimum(chunk_size, seq_len - chunk * chunk_size)
        first = row * seq_len + chunk * chunk_size
        a_rows = a_ptr + ((first + m) * token_stride + group * state_dim)[:, None]
        b_rows = b_ptr + ((first + k) * token_stride + group * state_dim)[:, None]
        for start in range(0, state_dim, BLOCK_K):
            n = (start + tl.arange(0, BLOCK_K))[None, :]
            if WHOLE:
                a, b = tl.load(a_rows + n), tl.load(b_rows + n)
            else:
                a = tl.load(a_rows + n, mask=(m < length)[:, None] & (n < state_dim), other=0.0)
                b = tl.load(b_rows + n, mask=(k < length)[:, None] & (n < state_dim), other=0.0)
            acc = tl.dot(a, b.T, acc, input_precision=PRECISION)
        if CAUSAL:
            acc = tl.where(k[None, :] <= m[:, None], acc, 0.0)
    out_rows = ((row * num_chunks + chunk) * num_groups + group) * chunk_size + m
    inside = (m < chunk_size)[:, None] & (k < chunk_size)[None, :]
    tl.store(out_ptr + out_rows[:, None] * chunk_size + k[None, :], acc, mask=inside)


def ssd_bmm(a, b, causal, out):
    batch, seq_len, num_groups, state_dim = a.shape
    num_chunks, chunk_size = out.shape[1], out.shape[3]
    tile = 64 if chunk_size > 32 else 32
    step = tile if a.element_size() == 2 else 32
    tiles = triton.cdiv(chunk_size, tile)
    _product_tile[(batch * num_chunks * num_groups * tiles * tiles,)](
        a,
        b,
        out,
        a.stride(1),  # a and b are strided alike
        seq_len,
        num_chunks,
        num_groups,
        state_dim,
        chunk_size,
        tiles,
        CAUSAL=causal,
        WHOLE=seq_len % chunk_size == 0 and chunk_size % tile == 0 and state_dim % step == 0,
        TILE=tile,
        BLOCK_K=step,
        num_warps=4,
    )
