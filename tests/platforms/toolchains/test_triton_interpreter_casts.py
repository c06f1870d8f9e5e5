# mypy: disable-error-code="no-untyped-def, misc, untyped-decorator"
"""Casts of the mended interpreter against PyTorch: every bfloat16 and fp8 pattern, and hard fp32 values."""

from __future__ import annotations

import os

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

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
LARGEST = {E4M3: 448.0, E5M2: 57344.0}
ALL_16 = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
ALL_8 = torch.arange(1 << 8, dtype=torch.int16).to(torch.uint8)


@triton.jit
def cast_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i).to(y.dtype.element_ty))


@triton.jit
def cut_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i).to(y.dtype.element_ty, fp_downcast_rounding="rtz"))


@triton.jit
def bits_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i).to(y.dtype.element_ty, bitcast=True))


@triton.jit
def constant_kernel(y, value: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.full((B,), value, y.dtype.element_ty))


def cast(x: torch.Tensor, to: torch.dtype, kernel=cast_kernel) -> torch.Tensor:
    y = torch.zeros(x.numel(), dtype=to)
    kernel[(1,)](x, y, x.numel())
    return y


def expected(x: torch.Tensor, to: torch.dtype) -> torch.Tensor:
    """PyTorch's cast, except that GPUs saturate to fp8."""
    return x.float().clamp(-LARGEST[to], LARGEST[to]).to(to) if to in LARGEST else x.to(to)


def assert_same(got: torch.Tensor, want: torch.Tensor) -> None:
    nan = torch.isnan(want.float())
    assert torch.equal(torch.isnan(got.float()), nan)
    raw = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[want.element_size()]
    assert torch.equal(got.view(raw)[~nan], want.view(raw)[~nan])


def hard_floats() -> torch.Tensor:
    """Random bit patterns, and every bfloat16 pattern with its neighbours half a step up: all the ties."""
    torch.manual_seed(0)
    ties = (ALL_16.to(torch.int32) << 16) | 0x8000
    near = torch.cat([ties - 1, ties, ties + 1, torch.randint(-(2**31), 2**31 - 1, (1 << 16,), dtype=torch.int32)])
    return near.view(torch.float32)


@pytest.mark.parametrize("to", [torch.float32, torch.float16, torch.float64, E4M3, E5M2])
def test_every_bfloat16_pattern_casts_as_in_pytorch(to):
    x = ALL_16.view(torch.bfloat16)
    assert_same(cast(x, to), expected(x, to))


@pytest.mark.parametrize("to", [torch.bfloat16, E4M3, E5M2])
def test_every_float16_pattern_casts_as_in_pytorch(to):
    x = ALL_16.view(torch.float16)
    assert_same(cast(x, to), expected(x, to))


@pytest.mark.parametrize("fp8", [E4M3, E5M2])
@pytest.mark.parametrize("to", [torch.float32, torch.float16, torch.bfloat16])
def test_every_fp8_pattern_casts_as_in_pytorch(fp8, to):
    x = ALL_8.view(fp8)
    assert_same(cast(x, to), x.to(to))


@pytest.mark.parametrize("to", [torch.bfloat16, torch.float16, E4M3, E5M2])
def test_float32_rounds_to_nearest_even(to):
    x = hard_floats()
    assert_same(cast(x, to), expected(x, to))


@pytest.mark.parametrize("to", [torch.bfloat16, torch.float16])
def test_rounding_toward_zero_never_grows(to):
    x = hard_floats()
    x = x[torch.isfinite(x)][: 1 << 17]
    x = torch.cat([x, torch.zeros((1 << 17) - x.numel())])
    got = cast(x, to, cut_kernel).double()
    assert bool((got.abs() <= x.double().abs()).all())
    nearest = x.to(to).double().clamp(-torch.finfo(to).max, torch.finfo(to).max)
    grew = nearest.abs() > x.double().abs()
    assert bool(grew.any())
    assert torch.equal(got[~grew], nearest[~grew])


@pytest.mark.parametrize("fp8", [E4M3, E5M2])
def test_bitcast_keeps_every_pattern(fp8):
    assert torch.equal(cast(ALL_8, fp8, bits_kernel).view(torch.uint8), ALL_8)
    assert torch.equal(cast(ALL_8.view(fp8), torch.uint8, bits_kernel), ALL_8)
    assert torch.equal(cast(ALL_16.view(torch.bfloat16), torch.int16, bits_kernel), ALL_16)


def test_floats_saturate_to_integers_as_on_an_h200():
    x = torch.tensor(
        [np.nan, np.inf, -np.inf, 3e9, -3e9, 300.7, -300.7, 7e4, -1.5, -0.5, 2.5, 255.9, -129.0, 4e4, 5e9, 0]
    )
    wanted = {
        torch.int8: [0, -1, 0, -1, 0, 44, -44, -1, -1, 0, 2, -1, 127, -1, -1, 0],
        torch.uint8: [0, 255, 0, 255, 0, 44, 0, 255, 0, 0, 2, 255, 0, 64, 255, 0],
        torch.int16: [0, 32767, -32768, 32767, -32768, 300, -300, 32767, -1, 0, 2, 255, -129, 32767, 32767, 0],
        torch.int32: [
            0,
            2**31 - 1,
            -(2**31),
            2**31 - 1,
            -(2**31),
            300,
            -300,
            70000,
            -1,
            0,
            2,
            255,
            -129,
            40000,
            2**31 - 1,
            0,
        ],
    }
    for dtype, values in wanted.items():
        assert cast(x, dtype).tolist() == values
    wide = cast(x, torch.int64).tolist()
    assert wide[:5] == [-(2**63), 2**63 - 1, -(2**63), 3_000_000_000, -3_000_000_000]


@pytest.mark.parametrize("to", [torch.bfloat16, torch.float16, torch.float32])
def test_integers_cast_as_in_pytorch(to):
    x = torch.randint(-(2**31), 2**31 - 1, (4096,), dtype=torch.int32)
    x[:8] = torch.tensor([0, 1, -1, 257, 258, 65504, 65520, 2**24 + 1])
    assert_same(cast(x, to), x.to(to))


@pytest.mark.parametrize("to", [torch.bfloat16, torch.float16, torch.float32, torch.int8])
def test_comparisons_cast_to_one_and_zero(to):
    x = ALL_16.view(torch.bfloat16)
    y = torch.full((1 << 16,), 9, dtype=to)
    positive_kernel[(1,)](x, y, 1 << 16)
    assert torch.equal(y, (x > 0).to(to))


@triton.jit
def positive_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, (tl.load(x + i) > 0).to(y.dtype.element_ty))


def test_constants_are_rounded_and_wrap():
    for dtype, value in ((torch.bfloat16, 1.00390625), (torch.bfloat16, 3.3e38), (torch.float16, 0.1)):
        y = torch.zeros(4, dtype=dtype)
        constant_kernel[(1,)](y, value, 4)
        assert torch.equal(y, torch.full((4,), value, dtype=dtype))
    y = torch.zeros(4, dtype=torch.int32)
    constant_kernel[(1,)](y, 0xFFFFFFFF, 4)
    assert y.tolist() == [-1] * 4


def test_fp8_of_ml_dtypes_and_pytorch_agree():
    for fp8, other in ((E4M3, ml_dtypes.float8_e4m3fn), (E5M2, ml_dtypes.float8_e5m2)):
        ours = ALL_8.view(fp8).float().numpy()
        assert np.array_equal(ours, ALL_8.numpy().view(other).astype(np.float32), equal_nan=True)
