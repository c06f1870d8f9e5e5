# mypy: disable-error-code="no-untyped-def, misc, untyped-decorator"
"""Operations on whole blocks in the mended interpreter: reductions, scans, sorting, products, atomics."""

from __future__ import annotations

import os
import time

import ml_dtypes
import numpy as np
import pytest

from arena.platforms.cpu.triton import install

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs TRITON_INTERPRET=1", allow_module_level=True)

import torch
import triton
import triton.language as tl

install()

NAN, INF = float("nan"), float("inf")
OLDEST = triton.__version__.startswith("3.2.")
OLD = triton.__version__.startswith(("3.2.", "3.3."))
LOW = [torch.bfloat16, torch.float16, torch.float32]


@triton.jit
def reduce_kernel(x, out, OP: tl.constexpr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        r = tl.sum(v, axis=AXIS)
    elif OP == "max":
        r = tl.max(v, axis=AXIS)
    elif OP == "min":
        r = tl.min(v, axis=AXIS)
    elif OP == "argmax":
        r = tl.argmax(v, axis=AXIS)
    else:
        r = tl.argmin(v, axis=AXIS)
    size: tl.constexpr = N if AXIS == 0 else M
    tl.store(out + tl.arange(0, size), r)


@triton.jit
def total_kernel(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(v))
    tl.store(out + 1, tl.max(v))
    tl.store(out + 2 + tl.arange(0, 1), tl.sum(v, keep_dims=True))


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def branching(a, b):
    if a > b:
        return a
    return b


@triton.jit
def welford_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    mean, m2, n = tl.reduce((v, tl.zeros_like(v), tl.full((M, N), 1.0, tl.float32)), -1, welford)
    i = tl.arange(0, M)
    tl.store(out + i, mean)
    tl.store(out + M + i, m2 / n)


@triton.jit
def scan_kernel(a, b, out, REVERSE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    _, s = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, affine, reverse=REVERSE)
    tl.store(out + i, s)


@triton.jit
def cumulative_kernel(x, sums, products, REVERSE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(sums + i, tl.cumsum(v, 0, reverse=REVERSE))
    tl.store(products + i, tl.cumprod(v, 0, reverse=REVERSE))


@triton.jit
def branching_kernel(x, out, N: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, N)), 0, branching))


@triton.jit
def sort_kernel(x, out, DESCENDING: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i)
    tl.store(out + i, tl.sort(v, descending=DESCENDING))
    tl.store(out + M * N + i, tl.flip(v, 1))


@triton.jit
def topk_kernel(x, out, K: tl.constexpr, N: tl.constexpr):
    tl.store(out + tl.arange(0, K), tl.topk(tl.load(x + tl.arange(0, N)), K))


@triton.jit
def dot_kernel(a, b, c, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    k = tl.arange(0, K)
    n = tl.arange(0, N)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    z = tl.load(c + m[:, None] * N + n[None, :])
    r = tl.dot(x, y, z, out_dtype=z.dtype)
    tl.store(out + m[:, None] * N + n[None, :], r)


@triton.jit
def dot_scaled_kernel(a, sa, b, sb, out, FORMAT: tl.constexpr, PACK: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    n = tl.arange(0, N)
    k = tl.arange(0, K // PACK)
    s = tl.arange(0, K // 32)
    x = tl.load(a + n[:, None] * (K // PACK) + k[None, :])
    xs = tl.load(sa + n[:, None] * (K // 32) + s[None, :])
    y = tl.load(b + tl.arange(0, K)[:, None] * N + n[None, :])
    ys = tl.load(sb + n[:, None] * (K // 32) + s[None, :])
    r = tl.dot_scaled(x, xs, FORMAT, y, ys, "e5m2")
    tl.store(out + n[:, None] * N + n[None, :], r)


@triton.jit
def atomic_kernel(at, where, x, old, n, N: tl.constexpr):
    i = tl.arange(0, N)
    before = tl.atomic_add(at + tl.load(where + i), tl.load(x + i), mask=i < n)
    tl.store(old + i, before, mask=i < n)


@triton.jit
def histogram_kernel(x, out, N: tl.constexpr, BINS: tl.constexpr):
    counts = tl.histogram(tl.load(x + tl.arange(0, N)), BINS)
    tl.store(out + tl.arange(0, BINS), counts)


def bits(x: torch.Tensor) -> torch.Tensor:
    return x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[x.element_size()])


@pytest.mark.parametrize("dtype", [*LOW, torch.int32])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
def test_extremes_and_their_leftmost_index(dtype, axis, op):
    torch.manual_seed(0)
    x = torch.randint(-9, 9, (16, 64)).to(dtype)
    want = np.argmax(x.double().numpy(), axis) if op == "argmax" else np.argmin(x.double().numpy(), axis)
    if op in ("max", "min"):
        want = getattr(x.double().numpy(), op)(axis)
    out = torch.zeros(64 if axis == 0 else 16, dtype=torch.int32 if op.startswith("arg") else dtype)
    reduce_kernel[(1,)](x, out, op, axis, 16, 64)
    assert np.array_equal(out.double().numpy(), want)


def test_nans_are_ignored_and_all_nan_slices_do_not_warn():
    x = torch.tensor([[1.0, NAN, 3.0, -INF], [NAN, NAN, NAN, NAN], [-INF, -INF, NAN, -INF], [2.0, 2.0, 0.0, 1.0]])
    out, index = torch.zeros(4), torch.zeros(4, dtype=torch.int32)
    reduce_kernel[(1,)](x, out, "max", 1, 4, 4)
    assert torch.equal(out.nan_to_num(nan=-77.0), torch.tensor([3.0, -77.0, -INF, 2.0]).nan_to_num(nan=-77.0))
    reduce_kernel[(1,)](x, index, "argmax", 1, 4, 4)
    assert index.tolist()[0] == 2 and index.tolist()[2:] == [0, 0]


@pytest.mark.parametrize("dtype", LOW)
def test_sums_round_in_the_elements_type(dtype):
    x = (torch.arange(256) * 0.37 % 1 + 1).to(dtype)
    out = torch.zeros(3, dtype=torch.float32)
    total_kernel[(1,)](x, out, 256)
    # Triton 3.2 adds bfloat16 in float32.
    tree = x.float() if dtype is torch.bfloat16 and OLDEST else x.clone()
    while len(tree) > 1:
        tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
    assert out[0] == tree[0].float() and out[2] == tree[0].float()
    assert out[1] == x.float().max()


def test_integer_sums_wrap():
    x = torch.full((4, 4), 2**31 - 1, dtype=torch.int32)
    out = torch.zeros(4, dtype=torch.int32)
    reduce_kernel[(1,)](x, out, "sum", 1, 4, 4)
    assert out.tolist() == [-4] * 4


def test_custom_reduction_over_a_negative_axis():
    torch.manual_seed(0)
    x, out = torch.randn(8, 128), torch.zeros(2, 8)
    welford_kernel[(1,)](x, out, 8, 128)
    torch.testing.assert_close(out, torch.stack([x.mean(1), x.var(1, correction=0)]))


@pytest.mark.parametrize("backwards", [False, True])
def test_associative_scan_keeps_order(backwards):
    torch.manual_seed(0)
    a, b, out = torch.rand(64), torch.randn(64), torch.zeros(64)
    scan_kernel[(1,)](a, b, out, backwards, 64)
    state, want = 0.0, []
    for i in reversed(range(64)) if backwards else range(64):
        state = a[i].item() * state + b[i].item()
        want.append(state)
    torch.testing.assert_close(out, torch.tensor(want[::-1] if backwards else want))


def test_custom_scans_and_reductions_of_4096_elements_are_fast():
    """In processor time, and the best of three: others share the machine."""
    a, b, out = torch.rand(4096), torch.randn(4096), torch.zeros(4096)
    took = []
    for _ in range(3):
        started = time.process_time()
        scan_kernel[(1,)](a, b, out, False, 4096)
        welford_kernel[(1,)](b, out, 1, 4096)
        took.append(time.process_time() - started)
    assert min(took) < 0.3


@pytest.mark.parametrize("backwards", [False, True])
def test_cumulative_sums_and_products(backwards):
    x = torch.rand(64) + 0.5
    out = torch.zeros(2, 64)
    cumulative_kernel[(1,)](x, out[0], out[1], backwards, 64)
    v = x.flip(0) if backwards else x
    want = torch.stack([v.cumsum(0), v.cumprod(0)])
    torch.testing.assert_close(out, want.flip(1) if backwards else want)


def test_combine_function_that_branches_on_scalars():
    x, out = torch.tensor([3.0, 9.0, -1.0, 4.0]), torch.zeros(1)
    branching_kernel[(1,)](x, out, 4)
    assert out.item() == 9.0


@pytest.mark.parametrize("dtype", [*LOW, torch.int32])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_and_flip(dtype, descending):
    torch.manual_seed(0)
    x = (torch.randn(4, 64) * 100).to(dtype)
    out = torch.zeros(2, 4, 64, dtype=dtype)
    sort_kernel[(1,)](x, out, descending, 4, 64)
    assert torch.equal(out[0], x.sort(descending=descending)[0])
    assert torch.equal(out[1], x.flip(1))


def test_sorting_1024_elements_is_fast():
    x = torch.randn(8, 1024)
    out = torch.zeros(2, 8, 1024)
    started = time.process_time()
    sort_kernel[(1,)](x, out, False, 8, 1024)
    assert time.process_time() - started < 0.5


@pytest.mark.skipif(not hasattr(tl, "topk"), reason="tl.topk is new in Triton 3.4")
@pytest.mark.parametrize("k", [1, 8, 64])
def test_topk(k):
    x, out = torch.randn(64), torch.zeros(k)
    topk_kernel[(1,)](x, out, k, 64)
    assert torch.equal(out, x.topk(k)[0])


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2]
)
@pytest.mark.parametrize("out_dtype", [torch.float32, torch.float16])
def test_dot_accumulates_in_float32(dtype, out_dtype):
    if out_dtype is torch.float16 and dtype in (torch.bfloat16, torch.float32):
        return
    torch.manual_seed(0)
    a, b, c = torch.randn(16, 64).to(dtype), torch.randn(64, 32).to(dtype), torch.randn(16, 32).to(out_dtype)
    out = torch.zeros(16, 32, dtype=out_dtype)
    dot_kernel[(1,)](a, b, c, out, 16, 64, 32)
    want = (a.double() @ b.double() + c.double()).to(out_dtype)
    torch.testing.assert_close(out, want, rtol=1e-3 if out_dtype is torch.float16 else 1e-5, atol=1e-5)


def test_integer_dot_is_exact():
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((16, 64), (64, 32)))
    c, out = torch.full((16, 32), 7, dtype=torch.int32), torch.zeros(16, 32, dtype=torch.int32)
    dot_kernel[(1,)](a, b, c, out, 16, 64, 32)
    assert torch.equal(out, a.int() @ b.int() + 7)


@pytest.mark.skipif(OLDEST, reason="tl.dot_scaled of Triton 3.2 takes no scales of the right operand")
@pytest.mark.parametrize("element", ["e2m1", "e4m3"])
def test_dot_scaled_decodes_values_and_scales(element):
    rng = np.random.default_rng(0)
    n, k = 16, 64
    scales = [rng.integers(124, 131, (n, k // 32)).astype(np.uint8) for _ in range(2)]
    right = rng.standard_normal((k, n)).astype(ml_dtypes.float8_e5m2)
    if element == "e2m1":
        left = rng.integers(0, 256, (n, k // 2)).astype(np.uint8)
        codes = np.stack([left & 15, left >> 4], -1).reshape(n, k)
        left_values = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    else:
        left = rng.standard_normal((n, k)).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        left_values = left.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    factors = [np.repeat(np.ldexp(1.0, s.astype(int) - 127), 32, 1) for s in scales]
    want = (left_values * factors[0]) @ (right.astype(np.float64) * factors[1].T)
    out = torch.zeros(n, n)
    parts = [torch.from_numpy(part) for part in (left, scales[0], right.view(np.uint8), scales[1])]
    dot_scaled_kernel[(1,)](*parts, out, element, 2 if element == "e2m1" else 1, k, n)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", LOW)
def test_atomic_adds_to_shared_addresses_return_what_was_there(dtype):
    if dtype is torch.bfloat16 and OLD:
        pytest.skip("no bfloat16 atomics before Triton 3.4")
    torch.manual_seed(0)
    where = torch.randint(0, 8, (64,), dtype=torch.int32)
    x, total = torch.randn(64).to(dtype), torch.randn(8).to(dtype)
    want, before = total.clone(), torch.zeros(64, dtype=dtype)
    for lane in range(50):
        before[lane] = want[where[lane]]
        want[where[lane]] += x[lane]
    old = torch.zeros(64, dtype=dtype)
    atomic_kernel[(1,)](total, where, x, old, 50, 64)
    assert torch.equal(bits(total), bits(want))
    assert torch.equal(bits(old), bits(before))


def test_histogram_is_int32_and_drops_what_is_outside():
    x = torch.tensor([0, 1, 1, 3, 4, 7, -1, 2], dtype=torch.int32)
    out = torch.full((6,), -5, dtype=torch.int32)
    histogram_kernel[(1,)](x, out, 8, 4)
    assert out.tolist() == [1, 2, 1, 1, -5, -5]
