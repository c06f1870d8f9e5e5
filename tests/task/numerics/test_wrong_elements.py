"""What is said of a wrong output: how many elements, where, in which pattern, and the worst."""

from __future__ import annotations

import math

import pytest
import torch

from arena.task.definition import OutputComparison, Tolerance
from arena.task.numerics.wrong_elements import describe_regret, describe_wrong, locate

INF, NAN = math.inf, math.nan
CLOSE = Tolerance(OutputComparison.CLOSE, atol=0.01, rtol=0.1)
EXACT = Tolerance(OutputComparison.EXACT)
QUANTIZED = Tolerance(OutputComparison.QUANTIZED)


def mask(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bool)


def marked(shape: tuple[int, ...], *where: object) -> torch.Tensor:
    found = mask(*shape)
    for place in where:
        found[place] = True  # type: ignore[index]
    return found


EVERY = slice(None)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (~mask(4, 8), "all 32 elements wrong"),
        (marked((4, 8), (2, 3)), "1 of 32 elements wrong"),
        (marked((64,), slice(60, None)), "4 of 64 elements wrong, [60] to [63]: from element 60 of 64 on"),
        (marked((4, 8), (EVERY, 6), (EVERY, 7)), "8 of 32 elements wrong, [0, 6] to [3, 7]: from column 6 of 8 on"),
        (marked((4, 8), 3), "8 of 32 elements wrong, [3, 0] to [3, 7]: from row 3 of 4 on"),
        (marked((16, 8), slice(3, None, 4)), "32 of 128 elements wrong, [3, 0] to [15, 7]: every 4th row from 3 to 15"),
        (marked((16, 8), 1, 2, 7), "24 of 128 elements wrong, [1, 0] to [7, 7]: 3 of 16 rows"),
        (marked((16, 8), 5), "8 of 128 elements wrong, [5, 0] to [5, 7]: only row 5"),
        (marked((4, 8), (EVERY, slice(0, 3))), "12 of 32 elements wrong, [0, 0] to [3, 2]: column 0 to 2 of 8"),
        (
            marked((2, 6, 8), (EVERY, slice(4, None), slice(6, None))),
            "8 of 96 elements wrong, [0, 4, 6] to [1, 5, 7]: "
            "from index 4 of 6 on along axis 1, from index 6 of 8 on along axis 2",
        ),
        (marked((9, 9), (0, 1), (3, 7), (5, 2)), "3 of 81 elements wrong, [0, 1] to [5, 2]"),
    ],
)
def test_places_and_patterns(found: torch.Tensor, said: str) -> None:
    assert locate(found, "wrong") == said


def test_a_pattern_survives_elements_that_are_right_by_chance() -> None:
    found = marked((16, 64), (EVERY, slice(48, None)))
    found[3, 50] = found[9, 61] = False
    assert locate(found, "wrong").endswith("from column 48 of 64 on")


def test_the_worst_element_is_named_with_its_tolerance() -> None:
    """The first is off by more, and right; the second is wrong. The scale is that of the row, 57.7."""
    got, wanted = torch.tensor([100.5, 1.0, 0.0]), torch.tensor([100.0, 1.0, 0.2]).double()
    wide = Tolerance(OutputComparison.CLOSE, atol=1e-3, rtol=1e-2)
    said = describe_wrong(got, wanted, wide, "float32")
    assert said == "1 of 3 elements wrong; worst at [2]: got 0, expected 0.2 ± 0.0597 (3.35 × tolerance)"
    lenient = describe_wrong(got, wanted, wide, "float32", leeway=2.0)
    assert lenient.endswith("expected 0.2 ± 0.119 (1.67 × tolerance)")


def test_not_a_number_is_the_worst_of_all() -> None:
    got, wanted = torch.zeros(3, 4), torch.zeros(3, 4).double()
    got[2, 1], got[1, 3] = 0.5, NAN
    said = describe_wrong(got, wanted, CLOSE, "float32")
    assert said.startswith("2 of 12 elements wrong, [1, 3] to [2, 1]; worst at ")
    assert "worst at [1, 3]: got nan, expected 0 ± 0 (inf × tolerance)" in said
    assert "got inf" in describe_wrong(torch.tensor([INF, 1.0]), torch.ones(2).double(), EXACT, "float32")


def test_exact_outputs_are_said_to_the_last_digit() -> None:
    got, wanted = torch.tensor([2**60, 7]), torch.tensor([2**60 + 1, 7])
    said = describe_wrong(got, wanted, EXACT, "int64")
    assert said == f"1 of 2 elements wrong; worst at [0]: got {2**60}, expected {2**60 + 1} exactly"
    same = torch.tensor([NAN, 1.0])
    assert describe_wrong(same, torch.tensor([NAN, 2.0]), EXACT, "float32").startswith("1 of 2 elements wrong")


def test_quantized_outputs_count_what_is_too_far_or_too_many() -> None:
    wanted = torch.zeros(16, dtype=torch.int8)
    got = wanted.clone()
    got[3:6] = 1
    assert describe_wrong(got, wanted, QUANTIZED, "int8") == (
        "3 of 16 elements wrong, [3] to [5]: element 3 to 5 of 16; worst at [3]: got 1, expected 0, one code off"
    )
    got[9] = 4
    assert describe_wrong(got, wanted, QUANTIZED, "int8") == (
        "1 of 16 elements wrong; worst at [9]: got 4, expected 0 ± 1 code"
    )


def test_choices_are_named_by_their_regret() -> None:
    said = describe_regret(torch.tensor([0.0, 0.5, NAN, 0.0]), 0.25)
    assert said == "2 of 4 elements wrong, [1] to [2]: element 1 to 2 of 4; worst at [2]: regret inf, allowed 0.25"
