"""Formulas are found for every shape that operators with strides, windows and products make, and for no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from arena.integrations.importers.domain import Formulas, split_product, times
from arena.integrations.importers.problem import Skipped
from arena.task.expression import Expression

BASE = {"n": 96, "m": 20}
SERIES = {"n": [*range(97, 168)], "m": [*range(21, 92)]}
OTHERS = [{"n": 7, "m": 3}, {"n": 33, "m": 64}, {"n": 250, "m": 11}]
Function = Callable[[Mapping[str, int]], int]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda p: 12, "12"),
        (lambda p: p["n"], "n"),
        (lambda p: 5 * p["n"] - 2, "5 * n - 2"),
        (lambda p: (p["n"] - 5) // 3 + 1, "(n - 2) // 3"),
        (lambda p: p["m"] // 11, "m // 11"),
        (lambda p: p["n"] * p["m"], "n * m"),
        (lambda p: 4 * (p["n"] // 2) * (p["m"] + 1), "4 * (n // 2) * (m + 1)"),
        (lambda p: p["n"] + 2 * p["m"] + 3, None),
        (lambda p: 3 * ((p["n"] + 1) // 2), None),
        (lambda p: (2 * p["m"] + 1) // 3, None),
    ],
)
def test_found(function: Function, text: str | None) -> None:
    formulas = Formulas(BASE, SERIES, OTHERS)
    found = formulas.find([function(point) for point in formulas.points])
    assert text is None or found == text
    for point in ({"n": 501, "m": 77}, {"n": 64, "m": 5}):
        assert Expression(found).value(point) == function(point)


@pytest.mark.parametrize("function", [lambda p: p["n"] ** 2, lambda p: p["n"] if p["m"] > 5 else 0])
def test_not_found(function: Function) -> None:
    formulas = Formulas(BASE, SERIES, OTHERS)
    with pytest.raises(Skipped, match="no formula of"):
        formulas.find([function(point) for point in formulas.points])


def test_products_of_dimensions_are_written_in_one_order() -> None:
    assert split_product(["m + 1", "3", "n", "2"]) == (6, "(m + 1) * n") == split_product(["n", "6", "m + 1"])
    assert [times(6, "n"), times(1, "n"), times(4, "")] == ["6 * n", "n", "4"]
