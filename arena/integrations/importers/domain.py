"""The axes of a problem: which sizes can be changed, in which steps, how small, and every shape as their formula."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from arena.integrations.importers.problem import Reason, Skipped
from arena.integrations.importers.program import ProblemProgram
from arena.integrations.importers.trace import Shape, Trace
from arena.task.expression import Expression, ExpressionError
from arena.task.options import CPU_MAX_WORK

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


_LEAST_PARAMETER_AXIS = 16
"""a size that shapes weights alone and is smaller than this is a constant: kernel sizes, numbers of groups"""
_SHORT, _LONG = 4, 72
"""sizes tried of each axis: enough for straight lines; enough for the strides of a deep network"""
_JOINT = 12
_LEAST_HIGH = 1024
_HIGH_FACTOR = 4
MOST_ELEMENTS = 1 << 28
_MOST_CONSTRAINTS = 6
_MOST_FLOPS_TEXT = 390
_LEAST_COUNTED = 0.95


@dataclass(frozen=True)
class FoundAxis:
    """A size that cases choose."""

    name: str
    low: int
    high: int
    step: int
    base: int


@dataclass(frozen=True)
class Shapes:
    """Every shape of a problem as formulas of its axes."""

    inputs: Mapping[str, tuple[str, ...]]
    bounds: Mapping[str, tuple[str, str]]
    weights: Mapping[str, tuple[str, ...]]
    outputs: tuple[tuple[str, ...], ...]
    terms: Mapping[str, int]
    """operations: a factor for each product of dimensions, the empty one included"""
    constraints: tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """The axes of a problem, its shapes as formulas, and the run at its own sizes."""

    axes: tuple[FoundAxis, ...]
    shapes: Shapes
    base: Trace


def find_domain(program: ProblemProgram, seed: str) -> Domain:
    """Find axes and formulas; raises `Skipped` where there are none."""
    base = program.trace({})
    axes = [axis for name in program.problem.sizes if (axis := _axis(program, name, base)) is not None]
    if not axes:
        raise Skipped(Reason.SIZES, "no size of an input can be changed")
    generator = random.Random(seed)
    axes = _joint(program, axes, generator)
    least = program.trace({axis.name: axis.low for axis in axes})
    if least.flops + least.held_bytes > CPU_MAX_WORK:
        raise Skipped(Reason.CASES, f"the least case has more than {CPU_MAX_WORK:.0e} operations and bytes")
    formulas, traces = _series(program, axes, base, generator)
    return Domain(tuple(axes), _shapes(formulas, traces, {a.name: a.high for a in axes}), base)


def _axis(program: ProblemProgram, name: str, base: Trace) -> FoundAxis | None:
    """The axis of one size, or None where it is a constant of the problem."""
    size = program.problem.sizes[name]
    steps = [step for step in range(1, size + 1) if size % step == 0 and step <= max(64, size // 2)]
    step = next((s for s in steps if s < size and program.runs({name: size - s}) and program.runs({name: size + s})), 0)
    if not step and size == 1 and program.runs({name: 2}):
        step = 1
    if not step:
        return None
    if not all(program.runs({name: size + step * number}) for number in (2, 3, _LONG)):
        return None
    other = program.trace({name: size + step})
    of_inputs = [d.shape for d in other.inputs] != [d.shape for d in base.inputs]
    of_weights = other.weights != base.weights and size >= _LEAST_PARAMETER_AXIS
    if not (of_inputs or of_weights) or other.skeleton() != base.skeleton():
        return None
    low = next((k * step for k in _ladder(size // step) if program.runs({name: k * step})), size)
    high = max(_LEAST_HIGH, _HIGH_FACTOR * size) // step * step
    return FoundAxis(name, low, high, step, size)


def _ladder(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12 … up to `most`."""
    found, value = [1, 2, 3], 4
    while value < most:
        found += [value, value * 3 // 2]
        value *= 2
    return [value for value in found if value <= most]


def _joint(program: ProblemProgram, axes: Sequence[FoundAxis], generator: random.Random) -> list[FoundAxis]:
    """Raise the lower bounds until all axes can be small together."""
    found = list(axes)
    for _ in range(5):
        points = [{axis.name: axis.low for axis in found}]
        points += [{axis.name: small(axis, generator) for axis in found} for _ in range(_JOINT)]
        if all(program.runs(point) for point in points):
            return found
        found = [FoundAxis(a.name, min(a.base, max(2 * a.low, a.step)), a.high, a.step, a.base) for a in found]
    raise Skipped(Reason.SIZES, "sizes depend on each other: it does not run with several of them changed")


def small(axis: FoundAxis, generator: random.Random) -> int:
    """Return a size from the lower end of the domain."""
    most = max(axis.low, min(axis.base, axis.low + 40 * axis.step))
    return axis.low + axis.step * generator.randint(0, (most - axis.low) // axis.step)


def _series(
    program: ProblemProgram, axes: Sequence[FoundAxis], base: Trace, generator: random.Random
) -> tuple[Formulas, list[Trace]]:
    """Runs along every axis, long ones where short ones show no straight line, and at random points."""
    others = [{a.name: max(2 * a.step, small(a, generator)) for a in axes} for _ in range(_JOINT)]
    series: dict[str, list[int]] = {}
    for axis in axes:
        values = [axis.base + axis.step * number for number in (*range(1, _SHORT), _LONG)]
        slots = [base.slots(), *(program.trace({axis.name: value}).slots() for value in values)]
        straight = all(
            2 * second == first + third and 2 * third == second + fourth and far - first == _LONG * (second - first)
            for first, second, third, fourth, far in zip(*slots, strict=True)
        )
        series[axis.name] = values if straight else [axis.base + axis.step * n for n in range(1, _LONG)]
    start = {axis.name: axis.base for axis in axes}
    formulas = Formulas(start, series, others)
    traces = []
    for point in formulas.points:
        traces.append(program.trace(point))
        if traces[-1].skeleton() != base.skeleton():
            raise Skipped(Reason.FORMULA, "which operators run depends on the sizes")
    return formulas, traces


def _shapes(formulas: Formulas, traces: Sequence[Trace], highest: Mapping[str, int]) -> Shapes:
    columns = zip(*(trace.slots() for trace in traces), strict=True)
    texts = iter([formulas.find(column) for column in columns])
    base = traces[0]

    def shape(sizes: Shape) -> tuple[str, ...]:
        return tuple(next(texts) for _ in sizes)

    inputs: dict[str, tuple[str, ...]] = {}
    bounds: dict[str, tuple[str, str]] = {}
    for drawn in base.inputs:
        inputs[drawn.name] = shape(drawn.shape)
        bounds[drawn.name] = (next(texts), next(texts))
    weights = {name: shape(sizes) for name, sizes in base.weights.items()}
    outputs = tuple(shape(sizes) for sizes, _ in base.outputs)
    terms: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for term in base.terms:
        dims = shape(term.dims)
        number, text = split_product(dims)
        terms[text] = terms.get(text, 0) + term.factor * number
        if not term.product:
            sizes[times(number, text)] = math.prod(term.dims)
    tensors = [(inputs[d.name], d.shape) for d in base.inputs] + [(weights[n], s) for n, s in base.weights.items()]
    for dims, found in tensors:
        sizes[times(*split_product(dims))] = math.prod(found)
    return Shapes(inputs, bounds, weights, outputs, terms, _constraints(sizes, highest))


def _constraints(sizes: Mapping[str, int], highest: Mapping[str, int]) -> tuple[str, ...]:
    """Bounds on the largest tensors, intermediate ones included, where the domain alone does not bound them."""
    open_ended = [text for text in sizes if _too_large(text, highest)]
    large = sorted(open_ended, key=lambda text: -sizes[text])
    return tuple(f"{text} <= {MOST_ELEMENTS}" for text in large[:_MOST_CONSTRAINTS])


def _too_large(text: str, sizes: Mapping[str, int]) -> bool:
    try:
        return Expression(text).value(sizes) > MOST_ELEMENTS
    except ExpressionError:
        return True


def work_text(shapes: Shapes, names: Mapping[str, int]) -> str:
    """Return the formula of the operations of a call; the smallest terms are left out where it becomes too long."""
    size = {text: factor * float(Expression(text or "1").value(names)) for text, factor in shapes.terms.items()}
    ordered = sorted(size, key=lambda text: -size[text])
    parts: list[str] = []
    for text in ordered:
        part = times(shapes.terms[text], text)
        if len(" + ".join([*parts, part])) > _MOST_FLOPS_TEXT:
            break
        parts.append(part)
    if sum(size[text] for text in ordered[: len(parts)]) < _LEAST_COUNTED * sum(size.values()):
        raise Skipped(Reason.FORMULA, "the formula of its operations is too long")
    return " + ".join(parts) or "0"
