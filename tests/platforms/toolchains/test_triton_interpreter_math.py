# mypy: disable-error-code="no-untyped-def, misc, untyped-decorator"
"""Elementwise arithmetic of the mended interpreter against PyTorch: low precision, integers, libdevice."""

from __future__ import annotations

import os

import pytest

from arena.platforms.cpu.triton import install

if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs TRITON_INTERPRET=1", allow_module_level=True)

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

install()

from triton.language.extra.libdevice import tanh as imported_tanh  # noqa: E402
from triton.language.math import rsqrt as imported_rsqrt  # noqa: E402

BF16_PATTERNS = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
LOW = [torch.bfloat16, torch.float16, torch.float32]


@triton.jit
def binary_kernel(x, y, out, OP: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    elif OP == "mul":
        c = a * b
    elif OP == "div":
        c = a / b
    elif OP == "floordiv":
        c = a // b
    elif OP == "mod":
        c = a % b
    elif OP == "lt":
        c = a < b
    elif OP == "ne":
        c = a != b
    elif OP == "min":
        c = tl.minimum(a, b)
    elif OP == "max":
        c = tl.maximum(a, b)
    elif OP == "where":
        c = tl.where(a > b, a, b)
    else:
        c = tl.math.fma(a, b, a)
    tl.store(out + i, c)


@triton.jit
def shift_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) >> tl.load(y + i))


@triton.jit
def masked_kernel(x, out, n, other, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=other)
    tl.store(out + i, v * 2, mask=i < n + 8)


@triton.jit
def libdevice_kernel(x, out, NAME: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, getattr(libdevice, NAME)(tl.load(x + i)))


@triton.jit
def other_functions_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.pow(v, v))
    tl.store(out + B + i, libdevice.copysign(v, -1.0 + v * 0))
    tl.store(out + 2 * B + i, libdevice.fma(v, v, v))
    tl.store(out + 3 * B + i, libdevice.isnan(v / (v - v)).to(tl.float32))
    tl.store(out + 4 * B + i, imported_tanh(v) + imported_rsqrt(v))
    tl.store(out + 5 * B + i, tl.extra.cuda.libdevice.fast_expf(v))
    tl.store(out + 6 * B + i, tl.extra.hip.libdevice.exp(v))
    tl.store(out + 7 * B + i, tl.erf(v) + tl.sigmoid(v))


@triton.jit
def asm_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x + i, v)


def run(op: str, a: torch.Tensor, b: torch.Tensor, out: torch.dtype | None = None) -> torch.Tensor:
    made = torch.zeros(a.numel(), dtype=out or a.dtype)
    binary_kernel[(1,)](a, b, made, op, a.numel())
    return made


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Every bfloat16 pattern against a shuffled copy, in `dtype`: NaN, infinities, denormals and zeros included."""
    torch.manual_seed(0)
    a = BF16_PATTERNS.to(dtype)
    a[torch.isnan(a)] = float("nan")  # signalling NaNs are nobody's contract
    return a, a[torch.randperm(a.numel())]


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_sums_and_products_round_as_in_pytorch(dtype, op):
    a, b = pairs(dtype)
    want = {"add": a + b, "sub": a - b, "mul": a * b}[op]
    assert torch.equal(run(op, a, b).nan_to_num(nan=-77.0), want.nan_to_num(nan=-77.0))


@pytest.mark.parametrize("dtype", LOW)
def test_division_by_zero_is_silent(dtype):
    a, b = pairs(dtype)
    want = (a.float() / b.float()).to(dtype)
    assert torch.equal(run("div", a, b).nan_to_num(nan=-77.0), want.nan_to_num(nan=-77.0))


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("op", ["lt", "ne", "where", "min", "max"])
def test_comparisons_and_selection(dtype, op):
    a, b = pairs(dtype)
    want = {
        "lt": a < b,
        "ne": a != b,
        "where": torch.where(a > b, a, b),
        "min": torch.fmin(a, b),
        "max": torch.fmax(a, b),
    }[op]
    got = run(op, a, b, torch.int8).bool() if op in ("lt", "ne") else run(op, a, b)
    assert torch.equal(got.float().nan_to_num(nan=-77.0), want.float().nan_to_num(nan=-77.0))


@pytest.mark.skipif(triton.__version__.startswith("3.2"), reason="compiled Triton 3.2 floors, too")
@pytest.mark.parametrize("dtype", LOW)
def test_remainder_takes_the_dividends_sign(dtype):
    torch.manual_seed(0)
    a, b = torch.randn(512).to(dtype), torch.randn(512).to(dtype)
    want = torch.fmod(a.float(), b.float()).to(dtype)
    assert torch.allclose(run("mod", a, b).float(), want.float(), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", LOW)
def test_fma_rounds_once(dtype):
    torch.manual_seed(0)
    a, b = torch.randn(4096).to(dtype), torch.randn(4096).to(dtype)
    want = (a.double() * b.double() + a.double()).to(dtype)
    got = run("fma", a, b)
    assert torch.equal(got, want)
    assert not torch.equal(a * b + a, want)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_divide_as_in_c_and_wrap(dtype):
    info = torch.iinfo(dtype)
    a = torch.randint(info.min, info.max, (512,), dtype=dtype)
    b = torch.randint(info.min, info.max, (512,), dtype=dtype)
    a[:8] = torch.tensor([-7, 7, -7, 7, info.min, info.max, -1, 0], dtype=dtype)
    b[:8] = torch.tensor([2, -2, -2, 2, 3, 1, 5, 9], dtype=dtype)
    b[b == 0] = 1
    assert torch.equal(run("floordiv", a, b), torch.div(a, b, rounding_mode="trunc"))
    assert torch.equal(run("mod", a, b), torch.fmod(a, b))
    for op, want in (("add", a + b), ("sub", a - b), ("mul", a * b)):
        assert torch.equal(run(op, a, b), want)
    shift = torch.randint(0, 7, (512,), dtype=dtype)
    out = torch.zeros_like(a)
    shift_kernel[(1,)](a, shift, out, 512)
    assert torch.equal(out, a >> shift)


def test_integer_division_by_zero_does_not_warn():
    a = torch.tensor([5, 5], dtype=torch.int32)
    run("floordiv", a, torch.tensor([0, 1], dtype=torch.int32))
    run("mod", a, torch.tensor([0, 1], dtype=torch.int32))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.int32])
def test_masked_loads_stay_in_bounds(dtype):
    x = torch.arange(1, 33).to(dtype)
    out = torch.full((64,), 5).to(dtype)
    masked_kernel[(1,)](x[:20], out, 20, 3.0 if dtype.is_floating_point else 3, 32)
    want = torch.cat([x[:20] * 2, torch.full((8,), 6).to(dtype), torch.full((36,), 5).to(dtype)])
    assert torch.equal(out, want)


def bessel_j0(x):
    """Bessel's integral by the midpoint rule, exact for periodic functions; PyTorch's is off by 4e-7 beyond 5."""
    judge_pool = (torch.arange(256, dtype=torch.float64) + 0.5) * (torch.pi / 256)
    return torch.where(x.isinf(), 0.0, torch.cos(x[:, None] * torch.sin(judge_pool)).mean(1))


NAMED_AS_IN_TORCH = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh "
    "cosh tanh asinh acosh atanh erf erfc erfinv sqrt rsqrt ceil floor trunc lgamma"
)
REAL = {
    **{name: getattr(torch, name) for name in NAMED_AS_IN_TORCH.split()},
    "rint": torch.round,
    "nearbyint": torch.round,
    "round": lambda x: torch.sign(x) * torch.floor(x.abs() + 0.5),
    "fast_expf": torch.exp,
    "fast_logf": torch.log,
    "tgamma": lambda x: torch.exp(torch.lgamma(x)),
    "normcdf": torch.special.ndtr,
    "cyl_bessel_i0": torch.special.i0,
    "j0": bessel_j0,
}


@pytest.mark.parametrize("name", sorted(REAL))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_libdevice_agrees_with_pytorch(name, dtype):
    if name.startswith("fast_") and dtype is torch.float64:
        return
    x = torch.cat([torch.linspace(0.01, 6.0, 505), torch.tensor([0.0, 0.5, 1.5, 2.5, float("inf"), float("nan"), 1.0])])
    if name not in ("lgamma", "tgamma"):
        x = torch.cat([x, -x])
    x = torch.cat([x, torch.ones(1024 - x.numel())]).to(dtype)
    out = torch.zeros_like(x)
    libdevice_kernel[(1,)](x, out, name, 1024)
    torch.testing.assert_close(out, REAL[name](x.double()).to(dtype), rtol=2e-7, atol=1e-30, equal_nan=True)


def test_libdevice_functions_of_several_arguments_and_other_ways_to_reach_them():
    x = torch.linspace(0.1, 3.0, 64)
    out = torch.zeros(8, 64)
    other_functions_kernel[(1,)](x, out, 64)
    want = [x**x, -x, x * x + x, torch.ones(64), torch.tanh(x) + torch.rsqrt(x), torch.exp(x), torch.exp(x)]
    want.append(torch.erf(x) + torch.sigmoid(x))
    torch.testing.assert_close(out[3], torch.zeros(64))
    want[3] = torch.zeros(64)
    torch.testing.assert_close(out, torch.stack(want))


def test_libdevice_refuses_types_that_the_vendor_refuses():
    x = torch.ones(16, dtype=torch.float16)
    with pytest.raises(Exception, match=r"float16|fp16|type"):
        libdevice_kernel[(1,)](x, x.clone(), "tanh", 16)


def test_libdevice_counts_bits():
    x = torch.tensor([0, 1, 2, -1, 2**30, 12, -(2**31), 7], dtype=torch.int32)
    for name, want in {
        "clz": [32, 31, 30, 0, 1, 28, 0, 29],
        "popc": [0, 1, 1, 32, 1, 2, 1, 3],
        "ffs": [0, 1, 2, 1, 31, 3, 32, 1],
    }.items():
        out = torch.zeros_like(x)
        libdevice_kernel[(1,)](x, out, name, 8)
        assert out.tolist() == want


def test_inline_assembly_says_why_it_cannot_run():
    with pytest.raises(Exception, match="CPU platform cannot run inline assembly"):
        asm_kernel[(1,)](torch.zeros(16, dtype=torch.int32), 16)
