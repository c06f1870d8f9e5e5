"""Right or wrong: scales, non-finite values, quantized and exact outputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.task.definition import DTYPE_BYTES, FLOATING, OutputComparison, Tolerance
from arena.task.numerics.arithmetic import FLOAT32_SUMS
from arena.task.numerics.comparison import (
    allowed_regret,
    close_errors,
    code_distance,
    default_tolerance,
    error_ratio,
    relative_error,
)
from arena.task.numerics.dtypes import bounds, torch_dtype

INF, NAN = math.inf, math.nan
CLOSE = Tolerance(OutputComparison.CLOSE, atol=0.01, rtol=0.1)
EXACT = Tolerance(OutputComparison.EXACT)
QUANTIZED = Tolerance(OutputComparison.QUANTIZED)


def ratio(actual: list[float], expected: list[float], tolerance: Tolerance = CLOSE, dtype: str = "float32") -> float:
    got = torch.tensor(actual, dtype=torch.float64).to(torch_dtype(dtype))
    return float(error_ratio(got, torch.tensor(expected, dtype=torch.float64), tolerance, dtype))


def test_close_by_hand() -> None:
    """RMS of (3, 4) is sqrt(12.5); allowed at the 4 is 0.01 * RMS + 0.1 * 4."""
    assert ratio([3, 4.25], [3, 4]) == pytest.approx(0.25 / (0.01 * math.sqrt(12.5) + 0.4))
    assert ratio([3, 4], [3, 4]) == 0


def test_a_row_or_column_larger_than_the_rest_has_its_own_scale() -> None:
    """RMS of all is sqrt(8), of the first row and column 4: by 0.01 times these may a zero be off."""
    expected = torch.tensor([[32**0.5, 0], [0, 0]], dtype=torch.float64)
    for place, scale in (((0, 1), 4), ((1, 0), 4), ((1, 1), 8**0.5)):
        actual = expected.clone()
        actual[place] = 0.03
        assert float(error_ratio(actual, expected, CLOSE, "float64")) == pytest.approx(0.03 / (0.01 * scale))
    flat = float(error_ratio(torch.tensor([4.0, 0.03]).double(), torch.tensor([4.0, 0.0]).double(), CLOSE, "float64"))
    assert flat == pytest.approx(0.03 / (0.01 * 8**0.5))


@pytest.mark.parametrize("queries", [1.0, 2.0])
def test_attention_with_rounded_softmax_weights_is_right(queries: float) -> None:
    """As production kernels do it: bfloat16 weights times values, float32 sums; causal, so that rows differ."""
    torch.manual_seed(0)
    q, k, v = ((torch.randn(4, 512, 64) * std).bfloat16().float() for std in (queries, 1.0, 1.0))
    hidden = torch.ones(512, 512).triu(1).bool()
    scores = (q @ k.transpose(1, 2) / 8).masked_fill(hidden, -INF)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    rounded = (weights.bfloat16().float() @ v / weights.sum(-1, keepdim=True)).bfloat16()
    exact = torch.softmax(scores.double(), -1) @ v.double()
    of_weights = relative_error(weights.bfloat16().float() @ v / weights.sum(-1, keepdim=True), exact)
    assert float(error_ratio(rounded, exact, default_tolerance("bfloat16"), "bfloat16", of_weights)) < 0.5
    weights[:, 4:, 3] = 0
    wrong = (weights @ v / weights.sum(-1, keepdim=True)).bfloat16()
    assert float(error_ratio(wrong, exact, default_tolerance("bfloat16"), "bfloat16", of_weights)) > 10


def test_a_softmax_that_adds_8192_terms_one_after_another_is_right() -> None:
    """Its worst rows begin with a term that holds nearly all of the sum, beside which later ones lose bits."""
    x = 3 * torch.randn(256, 8192, generator=torch.Generator().manual_seed(0))
    x[:, 0] = 17.5
    terms = (x - x.amax(-1, keepdim=True)).exp()
    total = torch.from_numpy(np.add.accumulate(terms.numpy(), axis=1)[:, -1:].copy())
    assert total.dtype == torch.float32
    exact = torch.softmax(x.double(), -1)
    assert 0.5 < float(error_ratio(terms / total, exact, default_tolerance("float32"), "float32")) < 0.9


@pytest.mark.parametrize("gains", [(1.0, 32.0), (32.0, 1.0), (32.0, 32.0)])
def test_what_a_matrix_unit_loses_in_large_rows_and_columns_is_right(gains: tuple[float, float]) -> None:
    """Its sums lose a part of what they run through: a result that cancels has lost as much as its row and column."""
    torch.manual_seed(0)
    a, b = torch.randn(16, 256, dtype=torch.float64), torch.randn(256, 4096, dtype=torch.float64)
    a[-4:] *= gains[0]
    b[:, -16:] *= gains[1]
    exact, lost = a @ b, FLOAT32_SUMS.lost(8192)
    found = exact - exact.sign() * lost * (a.square() @ b.square()).sqrt()
    assert 0.1 < float(error_ratio(found, exact, default_tolerance("float32"), "float32", 2 * lost)) < 0.5


def test_the_worst_element_counts() -> None:
    one = ratio([1.1, 1, 1, 1], [1, 1, 1, 1])
    assert ratio([1.1, 1, 0.8, 1], [1, 1, 1, 1]) == pytest.approx(2 * one, rel=1e-5)


def test_defaults_by_dtype() -> None:
    for dtype in DTYPE_BYTES:
        wanted = OutputComparison.CLOSE if dtype in FLOATING else OutputComparison.EXACT
        assert default_tolerance(dtype) == Tolerance(wanted)
    assert bounds(Tolerance(), "float8_e4m3fn") == (2.0**-14, 2.0**-14 + 2.0**-3)
    assert bounds(Tolerance(atol=0.0), "float16") == (0.0, 2.0**-14 + 2.0**-10)
    assert bounds(Tolerance(rtol=0.5), "float16") == (2.0**-14, 0.5)


SQUARABLE = st.floats(-100, 100).filter(lambda value: value == 0 or abs(value) > 1e-100)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(SQUARABLE, SQUARABLE), min_size=1, max_size=8),
    st.integers(-20, 20),
)
def test_the_scale_of_both_does_not_matter(pairs: list[tuple[float, float]], exponent: int) -> None:
    actual, expected = (torch.tensor(side, dtype=torch.float64) for side in zip(*pairs, strict=True))
    factor = 2.0**exponent
    before = float(error_ratio(actual, expected, CLOSE, "float64"))
    after = float(error_ratio(actual * factor, expected * factor, CLOSE, "float64"))
    assert after == pytest.approx(before, rel=1e-9)


@pytest.mark.parametrize(
    ("actual", "expected", "right"),
    [
        ([NAN, 1], [NAN, 1], True),
        ([NAN, 1], [1, 1], False),
        ([1, 1], [NAN, 1], False),
        ([INF, 1], [NAN, 1], False),
        ([NAN, 1], [INF, 1], False),
        ([INF, 1], [INF, 1], True),
        ([-INF, 1], [-INF, 1], True),
        ([-INF, 1], [INF, 1], False),
        ([3e38, 1], [INF, 1], False),
        ([INF, 1], [1, 1], False),
        ([1, INF], [INF, 1], False),
        ([NAN, NAN], [NAN, NAN], True),
        ([0, 0], [NAN, NAN], False),
        ([-INF, -INF], [-INF, -INF], True),
    ],
)
def test_non_finite_values_are_no_wildcards(actual: list[float], expected: list[float], right: bool) -> None:
    found = ratio(actual, expected)
    assert found == 0 if right else found > 1e30
    assert ratio(actual, expected, EXACT) == (0 if right else INF)


def test_an_infinity_does_not_blow_up_the_scale() -> None:
    """A mask of -inf, as in attention scores: the finite elements are held to their own scale."""
    assert ratio([-INF, 1.5], [-INF, 1]) == pytest.approx(0.5 / (0.01 + 0.1))
    assert ratio([-INF, 1.5, NAN], [-INF, 1, NAN]) == pytest.approx(0.5 / (0.01 + 0.1))


def test_a_reference_of_zeros_allows_nothing_else() -> None:
    assert ratio([0, -0.0], [0, 0]) == 0
    assert ratio([0, 1e-30], [0, 0]) == INF
    assert ratio([0, NAN], [0, 0]) == INF


SHAPES = [(), (1,), (7,), (3, 5), (4, 1), (2, 3, 8)]
SPECIAL = [0.0, INF, -INF, NAN, 65504.0, 65519.0, 3.4e38, 448.0, 500.0, 1e-45, 6e-8]


@pytest.mark.parametrize("dtype", sorted(FLOATING))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_the_worst_error_is_the_greatest_of_all_elements(
    dtype: str, shape: tuple[int, ...], data: st.DataObject
) -> None:
    """It is found in fewer passes over memory than the errors of all elements take, special values or not."""
    numbers = st.one_of(st.floats(-100, 100), st.sampled_from(SPECIAL))
    lists = st.lists(numbers, min_size=math.prod(shape), max_size=math.prod(shape))
    expected = torch.tensor(data.draw(lists), dtype=torch.float64).reshape(shape)
    off = torch.tensor(data.draw(lists), dtype=torch.float64).reshape(shape) * data.draw(st.sampled_from([0, 1e-3]))
    actual = (expected + off).to(torch_dtype(dtype))
    allowed = bounds(CLOSE, dtype, 0.0)
    wanted = float(close_errors(actual, expected, *allowed)[0].max())
    assert float(error_ratio(actual, expected, CLOSE, dtype)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.float8_e4m3fn])
@pytest.mark.parametrize("odd", [1.0, 500.0, 65519.0, 65520.0, 1e30, math.inf, math.nan])
@pytest.mark.parametrize("wrong", [0.0, 0.01, math.inf, math.nan])
def test_a_relative_error_is_that_of_all_elements_that_the_dtype_can_hold(
    dtype: torch.dtype | None, odd: float, wrong: float
) -> None:
    """By the slow way, element by element; at most 1."""
    generator = torch.Generator().manual_seed(1)
    expected = torch.randn(3, 8, 16, dtype=torch.float64, generator=generator)
    expected[1, 2, 3] = odd
    actual = (expected * (1 + 1e-3 * torch.rand(expected.shape, generator=generator))).float()
    actual[0, 0, 0] += wrong
    held = expected
    if dtype is torch.float16:
        held = torch.where(expected.abs() < 65520, expected, expected.sign() * INF)
    slowly = float(close_errors(actual, held, 1.0, 1.0)[0].nan_to_num(posinf=0.0).max())
    assert relative_error(actual, expected, 1.0, dtype) == pytest.approx(min(slowly, 1.0), rel=1e-12)


def test_small_elements_are_held_to_the_scale_of_all() -> None:
    assert ratio([100, 0.9], [100, 0]) < 2 and ratio([100, 10], [100, 0]) > 1


def test_what_the_dtype_cannot_hold_is_an_infinity() -> None:
    """70000 rounds to infinity in float16; a kernel that writes 65504 instead has saturated, and is wrong."""
    usual = default_tolerance("float16")
    assert ratio([INF, 1], [70000, 1], dtype="float16") == 0
    assert ratio([65504, 1], [70000, 1], usual, "float16") > 10
    assert ratio([-INF, 1], [70000, 1], usual, "float16") > 100
    assert ratio([INF, 1.2], [70000, 1], dtype="float16") == pytest.approx(0.2 / 0.11, rel=1e-2)
    assert ratio([70000, 1], [70000, 1], dtype="bfloat16") < 1
    assert ratio([448, 1], [448, 1], dtype="float8_e4m3fn") == 0


@pytest.mark.parametrize(
    ("dtype", "most", "step"), [("float16", 65504.0, 32.0), ("bfloat16", 2.0**128 - 2.0**120, 2.0**120)]
)
def test_close_to_what_the_dtype_can_hold_either_side_is_right(dtype: str, most: float, step: float) -> None:
    """A sum of 65520.1 is an infinity in float16, one of 65519.9 is 65504: honest kernels differ by as much."""
    usual = default_tolerance(dtype)
    for sign in (1, -1):
        for actual, expected in ((most, most + 0.503 * step), (INF, most + 0.497 * step), (INF, most + 0.503 * step)):
            assert ratio([sign * actual, 1], [sign * expected, 1], usual, dtype) < 0.5
            assert ratio([-sign * actual, 1], [sign * expected, 1], usual, dtype) > 1
        assert ratio([sign * INF, 1], [sign * 0.9 * most, 1], usual, dtype) > 1
        assert ratio([sign * most, 1], [sign * INF, 1], usual, dtype) == INF


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_default_tolerances_pass_rounding_and_fail_lower_precision(dtype: str) -> None:
    wanted = torch.randn(4096, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rounded = wanted.to(torch_dtype(dtype))
    assert error_ratio(rounded, wanted, default_tolerance(dtype), dtype) < 0.5
    lower = {"float32": torch.bfloat16}.get(dtype, torch.float8_e4m3fn)
    worse = wanted.to(lower).to(torch_dtype(dtype))
    assert error_ratio(worse, wanted, default_tolerance(dtype), dtype) > 1


@pytest.mark.parametrize("tolerance", [CLOSE, EXACT, QUANTIZED])
def test_nothing_is_right(tolerance: Tolerance) -> None:
    assert ratio([], [], tolerance, "int8" if tolerance is QUANTIZED else "float32") == 0


def test_another_shape_is_an_error_of_the_reference() -> None:
    with pytest.raises(ValueError, match=r"the reference gives shape \(1,\), declared is \(2,\)"):
        ratio([1, 2], [1])


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool", "float32", "float16", "float8_e4m3fn"])
def test_exact(dtype: str) -> None:
    assert ratio([0, 1, 1], [0, 1, 1], EXACT, dtype) == 0
    assert ratio([0, 1, 0], [0, 1, 1], EXACT, dtype) == INF


def codes(count: int, off: dict[int, int], dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Expected codes, and actual ones that are `off` by so many steps at some places."""
    steps = torch.arange(count) % 60 + 8
    moved = steps.clone()
    for place, by in off.items():
        moved[place] += by
    if dtype.startswith("float8"):
        views = [values.to(torch.uint8).view(torch_dtype(dtype)) for values in (moved, steps)]
        return views[0], views[1]
    return moved.to(torch_dtype(dtype)), steps.to(torch_dtype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize(
    ("count", "off", "wanted"),
    [
        (400, {}, 0.0),
        (800, {3: 1}, 0.125),
        (800, dict.fromkeys(range(0, 800, 100), -1), 1.0),
        (800, dict.fromkeys(range(10), 1), 1.25),
        (800, {3: 2}, INF),
        (800, {3: -2}, INF),
        (400, {3: 1, 50: -1, 90: 1}, 0.5),
        (96, dict.fromkeys(range(6), 1), 1.0),
        (96, dict.fromkeys(range(9), 1), 1.5),
        (32, {3: 1, 4: 1}, 1.0),
        (10, {3: 1}, 1.0),
        (10, {3: 1, 4: 1}, 2.0),
    ],
)
def test_quantized(dtype: str, count: int, off: dict[int, int], wanted: float) -> None:
    actual, expected = codes(count, off, dtype)
    assert float(error_ratio(actual, expected.double(), QUANTIZED, dtype)) == wanted


def test_ties_of_a_small_quantization_are_let_be() -> None:
    """A reciprocal in place of a division: 63.5 steps fall to either side, in several elements of a row at a time."""
    torch.manual_seed(0)
    for _ in range(400):
        x = torch.randn(2, 48).bfloat16().float()
        largest = x.abs().amax(-1, keepdim=True)
        exact = torch.round(x.double() / (largest.double() / 127))
        assert float(error_ratio((x * (127 / largest)).round().to(torch.int8), exact, QUANTIZED, "int8")) < 1


def test_quantized_steps_cross_zero_and_never_reach_nan() -> None:
    tiny = 2.0**-9
    assert ratio([-tiny, 1], [0, 1], QUANTIZED, "float8_e4m3fn") == 1
    assert ratio([-tiny, 1], [tiny, 1], QUANTIZED, "float8_e4m3fn") == INF
    assert ratio([-0.0, 1], [0.0, 1], QUANTIZED, "float8_e4m3fn") == 0
    assert ratio([NAN, 1], [448, 1], QUANTIZED, "float8_e4m3fn") == INF
    assert ratio([NAN, 1], [NAN, 1], QUANTIZED, "float8_e4m3fn") == 0


def test_codes_without_negative_zero() -> None:
    """float8_e4m3fnuz: neighbours are one step apart, over zero too; the byte of -0 is NaN and far from all."""
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fnuz)
    ordered = codes[~codes.float().isnan()]
    ordered = ordered[ordered.float().argsort()]
    assert len(ordered) == 255
    assert code_distance(ordered[1:], ordered[:-1]).tolist() == [1] * 254
    assert bool((code_distance(codes[128:129], ordered) > 1000).all())
    assert ratio([240, 1], [224, 1], QUANTIZED, "float8_e4m3fnuz") == 1
    assert ratio([NAN, 1], [0, 1], QUANTIZED, "float8_e4m3fnuz") == INF


def test_the_regret_that_a_decision_may_have() -> None:
    assert allowed_regret(Tolerance(OutputComparison.DECISION)) == 1e-6
    assert [allowed_regret(Tolerance(OutputComparison.DECISION, atol=atol)) for atol in (0.0, 0.25)] == [0.0, 0.25]
