"""Formulas for numbers that were seen at several sizes: each is found by search and must hold at every point seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from arena.integrations.importers.problem import Reason, Skipped
from arena.task.expression import Expression

Point = Mapping[str, int]
_MOST_DIVISOR = 64
_MOST_FACTOR = 8


class Formulas:
    """Finds formulas over axes from series: for each axis, points in which it alone differs from the first."""

    def __init__(self, base: Point, series: Mapping[str, Sequence[int]], others: Sequence[Point]) -> None:
        self._base, self._series, self._others = base, series, others
        self._known: dict[tuple[int, ...], str] = {}

    @property
    def points(self) -> list[Point]:
        """Every point, in the order in which `find` expects values: the base, the series, the others."""
        alone = [{**self._base, name: value} for name, values in self._series.items() for value in values]
        return [self._base, *alone, *self._others]

    def find(self, values: Sequence[int]) -> str:
        """Return a formula that gives `values` at `points`; raises `Skipped` where the search finds none."""
        key = tuple(values)
        if key not in self._known:
            self._known[key] = self._find(key)
        return self._known[key]

    def _find(self, values: tuple[int, ...]) -> str:
        alone: dict[str, list[int]] = {}
        place = 1
        for name, series in self._series.items():
            alone[name] = [values[0], *values[place : place + len(series)]]
            place += len(series)
        moving = [name for name, found in alone.items() if len(set(found)) > 1]
        for text in self._candidates(values[0], {name: alone[name] for name in moving}):
            if text is not None and self._holds(text, values):
                return text
        raise Skipped(Reason.FORMULA, f"no formula of {', '.join(moving) or 'the sizes'} found for {values[0]}")

    def _candidates(self, base: int, alone: Mapping[str, list[int]]) -> list[str | None]:
        if not alone:
            return [str(base)]
        if len(alone) == 1:
            ((name, found),) = alone.items()
            return [self._single(name, found)]
        return [self._product(base, alone), self._sum(base, alone)]

    def _product(self, base: int, alone: Mapping[str, list[int]]) -> str | None:
        parts, known = [], 1
        for name, found in alone.items():
            common = math.gcd(*found)
            if not common:
                return None
            text = self._single(name, [value // common for value in found])
            if text is None:
                return None
            parts.append(_grouped(text))
            known *= found[0] // common
        if not known or base % known:
            return None
        return " * ".join([*([str(base // known)] if base != known else []), *parts])

    def _sum(self, base: int, alone: Mapping[str, list[int]]) -> str | None:
        texts = [self._single(name, found) for name, found in alone.items()]
        if any(text is None for text in texts):
            return None
        return _plus(" + ".join(str(text) for text in texts), -base * (len(texts) - 1))

    def _single(self, name: str, found: Sequence[int]) -> str | None:
        sizes = [self._base[name], *self._series[name]]
        first, last = min(range(len(sizes)), key=sizes.__getitem__), max(range(len(sizes)), key=sizes.__getitem__)
        slope = Fraction(found[last] - found[first], sizes[last] - sizes[first])
        if slope.denominator == 1:
            offset = found[0] - slope.numerator * sizes[0]
            if all(value == slope * size + offset for size, value in zip(sizes, found, strict=True)):
                return _affine(slope.numerator, name, offset)
        return self._floored(name, sizes, found, slope)

    def _floored(self, name: str, sizes: Sequence[int], found: Sequence[int], slope: Fraction) -> str | None:
        """A factor times a floored quotient, such as the output size of a convolution with a stride."""
        span = max(sizes) - min(sizes)
        for q in range(2, _MOST_DIVISOR + 1):
            for outer in range(1, _MOST_FACTOR + 1):
                for p in range(1, _MOST_FACTOR + 1):
                    near = abs(slope - Fraction(p * outer, q)) * span <= 2 * outer
                    text = _quotient(name, sizes, found, p, q, outer) if near else None
                    if text is not None:
                        return text
        return None

    def _holds(self, text: str, values: Sequence[int]) -> bool:
        formula = Expression(text)
        return all(formula.value(point) == value for point, value in zip(self.points, values, strict=True))


def _quotient(name: str, sizes: Sequence[int], found: Sequence[int], p: int, q: int, outer: int) -> str | None:
    """`outer * ((p * size + c) // q) + e`; None where no c and e fit."""
    for c in range(q):
        e = found[0] - outer * ((p * sizes[0] + c) // q)
        if all(value == outer * ((p * size + c) // q) + e for size, value in zip(sizes, found, strict=True)):
            # A whole number outside the quotient moves into it, so that sizes read as in textbooks.
            inside = f"({_affine(p, name, c + q * (e // outer) if e % outer == 0 else c)}) // {q}"
            inside = inside.replace(f"({name})", name)
            text = inside if outer == 1 else f"{outer} * ({inside})"
            return text if e % outer == 0 else _plus(text, e)
    return None


def _affine(factor: int, name: str, offset: int) -> str:
    return _plus(name if factor == 1 else f"{factor} * {name}", offset)


def _plus(text: str, offset: int) -> str:
    return text if not offset else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"


def _grouped(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def split_product(dims: Sequence[str]) -> tuple[int, str]:
    """Return a product of dimensions as a number and the formula of all others, in a fixed order."""
    names = sorted(dim for dim in dims if not dim.isdigit())
    return math.prod(int(dim) for dim in dims if dim.isdigit()), " * ".join(map(_grouped, names))


def times(number: float, formula: str) -> str:
    """Return `number * formula`; an empty formula is 1."""
    shown = f"{number:.0f}"
    if not formula:
        return shown
    return formula if number == 1 else f"{shown} * {formula}"
