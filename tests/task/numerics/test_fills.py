"""Every fill: shape, dtype, range, and independent draws."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from arena.errors import UsageError
from arena.task.definition import DTYPE_BYTES, Fill
from arena.task.expression import Expression
from arena.task.numerics import fills
from arena.task.numerics.dtypes import torch_dtype
from arena.task.numerics.fills import draw, is_custom, zeros_will_do
from tests.one_input import one_input

SETS = 6


def drawn(fill: Fill, shape: tuple[int, ...], dtype: str, seed: int = 0, sets: int = SETS) -> torch.Tensor:
    worked_out = one_input(fill, shape, dtype)
    return draw(worked_out.inputs[0], worked_out, sets, torch.Generator().manual_seed(seed))


def levels(values: torch.Tensor) -> list[float]:
    """Every value that occurs, in order."""
    return sorted(set(values.flatten().tolist()))


def fill(kind: str, **texts: str) -> Fill:
    return Fill(kind, {name: Expression(text) for name, text in texts.items()})


ALL = [
    (fill("normal"), (3, 40), "bfloat16"),
    (fill("normal", mean="3", std="0.1"), (64,), "float8_e4m3fn"),
    (fill("sparse", value="0.2"), (9, 30), "bfloat16"),
    (fill("equal_rows", mean="0", std="3"), (9, 30), "float16"),
    (fill("peaks", mean="9", std="1"), (9, 30), "float16"),
    (fill("uniform", low="-1", high="M"), (5, 64), "float16"),
    (fill("integers", low="-M", high="M"), (200,), "int8"),
    (fill("bernoulli", value="0.5"), (200,), "bool"),
    (fill("permutation"), (4, 50), "int64"),
    (fill("one_hot"), (40, 9), "float32"),
    (fill("offsets", total="1000", least="2"), (30,), "int32"),
    (fill("distinct", below="500"), (10, 20), "int32"),
    (fill("page_table", pages="500"), (10, 20), "int32"),
    (fill("addresses", row_bytes="4 * M"), (50,), "int64"),
]


@pytest.mark.parametrize(("spec", "shape", "dtype"), ALL, ids=lambda value: getattr(value, "kind", None))
def test_draws_are_typed_independent_and_reproducible(spec: Fill, shape: tuple[int, ...], dtype: str) -> None:
    values = drawn(spec, shape, dtype)
    assert values.shape == (SETS, *shape)
    assert values.dtype == torch_dtype(dtype)
    assert values.is_contiguous()
    sets = [tuple(part.double().flatten().tolist()) for part in values]
    assert len(set(sets)) == SETS
    assert torch.equal(values.double(), drawn(spec, shape, dtype).double())
    assert not torch.equal(values.double(), drawn(spec, shape, dtype, seed=1).double())


@pytest.mark.parametrize("dtype", sorted(DTYPE_BYTES))
def test_sizes_of_dtypes(dtype: str) -> None:
    assert torch_dtype(dtype).itemsize == DTYPE_BYTES[dtype]
    assert drawn(fill("constant", value="1"), (2, 3), dtype).double().tolist() == [[[1.0] * 3] * 2] * SETS


def test_constants_are_not_rounded() -> None:
    assert levels(drawn(fill("constant", value="2 ** 24 + 1"), (2,), "int32")) == [2**24 + 1]
    assert levels(drawn(fill("constant", value="M / 8"), (2,), "float32")) == [1.5]


def test_normal_has_its_mean_and_deviation() -> None:
    values = drawn(fill("normal", mean="3", std="0.5"), (4000,), "float32")
    assert abs(values.mean().item() - 3) < 0.03
    assert abs(values.std().item() - 0.5) < 0.02
    plain = drawn(fill("normal"), (4000,), "float32")
    assert abs(plain.mean().item()) < 0.06 and abs(plain.std().item() - 1) < 0.04


def test_uniform_and_integers_fill_their_range() -> None:
    values = drawn(fill("uniform", low="-0.5", high="2"), (4000,), "float32")
    assert -0.5 <= values.min() < -0.45 and 1.95 < values.max() <= 2
    whole = drawn(fill("integers", low="-3", high="M - 9"), (400,), "int32")
    assert levels(whole) == [-3, -2, -1, 0, 1, 2]
    large = drawn(fill("integers", low="2 ** 40", high="2 ** 40 + 2"), (40,), "int64")
    assert levels(large) == [2**40, 2**40 + 1]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float8_e4m3fn"])
def test_sparse_inputs_are_zero_but_for_a_share_of_normal_numbers(dtype: str) -> None:
    values = drawn(fill("sparse", value="1 / M"), (40, 100), dtype).double()
    assert 0.07 < (values != 0).double().mean() < 0.1
    assert abs(values[values != 0].std().item() - 1) < 0.05


def test_each_row_of_peaks_has_one_at_a_random_place() -> None:
    values = drawn(fill("peaks", mean="50", std="1"), (500, 7), "float32")
    peaks = values > 25
    assert (peaks.sum(-1) == 1).all()
    assert peaks.sum(dim=tuple(range(peaks.ndim - 1))).min() > 20
    assert abs(float(values[~peaks].mean())) < 0.2 and abs(float(values[peaks].mean()) - 50) < 0.2


def test_each_row_of_equal_rows_has_a_number_of_its_own() -> None:
    values = drawn(fill("equal_rows", mean="5", std="2"), (500, 7), "float32")
    assert bool((values == values[..., :1]).all()) and len(levels(values)) == SETS * 500
    assert abs(values.mean().item() - 5) < 0.2 and abs(values.std().item() - 2) < 0.2


@pytest.mark.parametrize(("chance", "low", "high"), [("0", 0, 0), ("1", 1, 1), ("0.25", 0.2, 0.3)])
def test_bernoulli_has_its_chance(chance: str, low: float, high: float) -> None:
    assert low <= drawn(fill("bernoulli", value=chance), (2000,), "bool").double().mean() <= high


@pytest.mark.parametrize(("dtype", "largest"), [("float8_e4m3fn", 448.0), ("float8_e4m3fnuz", 240.0)])
def test_what_is_too_large_for_8_bits_is_the_largest_number_and_never_nan(dtype: str, largest: float) -> None:
    values = drawn(fill("normal", std="1000"), (500,), dtype).float()
    assert bool(values.isfinite().all()) and values.abs().max() == largest


@pytest.mark.slow(but=["bernoulli-bool"])
@pytest.mark.parametrize(
    ("spec", "dtype"),
    [
        (fill("normal"), "float8_e4m3fn"),
        (fill("uniform", low="1", high="2"), "float8_e5m2"),
        (fill("integers", low="-8", high="8"), "int8"),
        (fill("integers", low="-8", high="8"), "float8_e4m3fn"),
        (fill("bernoulli", value="0.5"), "bool"),
        (fill("bernoulli", value="0.5"), "float8_e5m2"),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_bytes_are_drawn_in_little_more_than_their_own_memory(
    spec: Fill, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fills, "_PIECE", 1 << 16)
    elements = 1 << 22
    with LargestAllocation() as largest:
        values = drawn(spec, (elements // SETS,), dtype)
    assert largest.num_bytes <= elements
    pieces = torch.split(values.view(-1).double(), 1 << 16)
    assert len({tuple(piece[:64].tolist()) for piece in pieces}) == len(pieces)
    assert abs(pieces[-1].mean() - pieces[0].mean()) < 0.2


class LargestAllocation(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches what PyTorch's operators return."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.num_bytes = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.num_bytes = max(self.num_bytes, result.numel() * result.element_size())
        return result


@pytest.mark.parametrize("length", [1, 7, 5000])
def test_permutations_hold_every_index_once(length: int) -> None:
    values = drawn(fill("permutation"), (2, length), "int32", sets=2)
    assert torch.equal(values.sort(dim=-1).values, torch.arange(length, dtype=torch.int32).expand(2, 2, -1))


def test_one_hot_rows_hold_a_single_one() -> None:
    values = drawn(fill("one_hot"), (50, 9), "float16")
    assert levels(values.sum(dim=-1)) == [1.0]
    assert levels(values) == [0.0, 1.0]
    assert len(levels(values.argmax(dim=-1))) == 9


@pytest.mark.parametrize(("parts", "total", "least"), [(1, 10, 0), (8, 100, 0), (8, 100, 5), (10, 50, 5), (3, 0, 0)])
def test_offsets_ascend_from_zero_to_the_total(parts: int, total: int, least: int) -> None:
    values = drawn(fill("offsets", total=str(total), least=str(least)), (2, parts + 1), "int32")
    assert levels(values[..., 0]) == [0]
    assert levels(values[..., -1]) == [total]
    assert values.diff(dim=-1).min() >= least


@pytest.mark.parametrize(("kind", "name"), [("distinct", "below"), ("page_table", "pages")])
def test_distinct_integers(kind: str, name: str) -> None:
    values = drawn(fill(kind, **{name: "30"}), (3, 10), "int32")
    for part in values:
        assert sorted(part.flatten().tolist()) == list(range(30))
    sparse = drawn(fill(kind, **{name: "1000"}), (40,), "int32")
    assert all(len(levels(part)) == 40 for part in sparse)
    assert sparse.min() >= 0 and 500 < sparse.max() < 1000


def test_addresses_are_rows_in_any_order() -> None:
    values = drawn(Fill("addresses", {"of": "y", "row_bytes": Expression("4 * M")}), (20,), "int64")
    for part in values:
        assert sorted(part.tolist()) == [48 * row for row in range(20)]


@pytest.mark.parametrize("kind", ["normal", "permutation", "bernoulli"])
def test_nothing_can_be_drawn(kind: str) -> None:
    spec = fill(kind, value="0.5") if kind == "bernoulli" else fill(kind)
    assert drawn(spec, (0, 5), "float32").shape == (SETS, 0, 5)


@pytest.mark.parametrize(
    ("spec", "shape", "says"),
    [
        (fill("integers", low="5", high="5"), (3,), r"fill of x: no integer in \[5, 5\)"),
        (fill("offsets", total="9", least="5"), (3,), "9 cannot be cut into 2 parts of at least 5"),
        (fill("offsets", total="9"), (1,), "9 cannot be cut into 0 parts"),
        (fill("distinct", below="5"), (2, 3), "6 distinct integers below 5 do not exist"),
        (fill("custom"), (3,), "fill 'custom' of x has no filler here"),
    ],
)
def test_what_cannot_be_filled_is_said(spec: Fill, shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        drawn(spec, shape, "int32")


def test_custom_is_for_the_reference() -> None:
    assert is_custom(Fill("custom")) and not is_custom(Fill("normal")) and not is_custom(None)


@pytest.mark.parametrize(
    ("kind", "dtype", "enough"),
    [
        (fill("normal"), "bfloat16", True),
        (fill("integers", low="-8", high="8"), "int8", True),
        (fill("integers", low="0", high="M"), "int32", True),
        (fill("integers", low="1", high="M"), "int32", False),
        (fill("integers", low="-M", high="0"), "int64", False),
        (fill("permutation"), "int32", False),
    ],
)
def test_where_memory_full_of_zeros_is_an_input_as_well(kind: Fill, dtype: str, enough: bool) -> None:
    worked_out = one_input(kind, (4, 5), dtype)
    assert zeros_will_do(worked_out.inputs[0], worked_out) is enough
