"""Arithmetic over axes, as task files write it: evaluated by walking a whitelist of nodes, never `eval`."""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from arena.errors import UsageError

Number = int | float | bool
MAX_LENGTH = 400
MAX_VALUE = 2**63
_MAX_POWER_BITS = 128

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > 64 or (abs(base) > 1 and exponent * math.log2(abs(base)) > _MAX_POWER_BITS):
        raise ValueError("a power out of all proportion")
    result = base**exponent
    if not isinstance(result, int | float):
        raise ValueError("a fractional power of a negative number")
    return result


def _cdiv(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "cdiv": _cdiv,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "int": int,
    "next_power_of_2": lambda value: 1 << max(0, int(value) - 1).bit_length(),
}
FUNCTION_NAMES = frozenset(_FUNCTIONS)


class ExpressionError(UsageError):
    """An expression that is not arithmetic over known names, or that has no value for a case."""


@dataclass(frozen=True)
class Expression:
    """Arithmetic with `+ - * / // % **`, comparisons, `and or not`, `a if c else b` and a few functions."""

    text: str

    def __post_init__(self) -> None:
        _arithmetic(self.text)

    @cached_property
    def _tree(self) -> ast.expr:
        return _arithmetic(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names whose values it needs."""
        found = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        return frozenset(found - FUNCTION_NAMES)

    def value(self, names: Mapping[str, Number]) -> Number:
        """Its value for a case; raises `ExpressionError` for unknown names, zero division and absurd sizes."""
        try:
            result = _walk(self._tree, names)
        except KeyError as missing:
            raise ExpressionError(f"`{self.text}`: unknown name {missing}") from None
        except (ArithmeticError, TypeError, ValueError) as problem:
            raise ExpressionError(f"`{self.text}`: {problem}") from None
        if not isinstance(result, bool | int | float) or not abs(result) <= MAX_VALUE:  # NaN too
            raise ExpressionError(f"`{self.text}`: no sensible value")
        return result

    def integer(self, names: Mapping[str, Number]) -> int:
        """Its value where only a whole number makes sense, such as an axis size."""
        result = self.value(names)
        if result != int(result):
            raise ExpressionError(f"`{self.text}`: {result} is not a whole number")
        return int(result)


@lru_cache(maxsize=4096)
def _arithmetic(text: str) -> ast.expr:
    """Parse an expression; raises `ExpressionError` unless it is arithmetic. Many tasks have the same shapes."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expression longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as problem:
        raise ExpressionError(f"`{text}`: not an expression ({problem.msg})") from None
    except (ValueError, RecursionError, MemoryError) as problem:
        raise ExpressionError(f"{text!r}: not an expression ({problem})") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ExpressionError(f"`{text}`: {type(node).__name__} is not arithmetic")
        if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
            raise ExpressionError(f"`{text}`: {node.value!r} is not a number")
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise ExpressionError(f"`{text}`: no function {ast.unparse(node.func)}; there are {known}")
    return tree


def _walk(node: ast.expr, names: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_walk(left, names), _walk(right, names))
        case ast.BinOp(left=left, op=operation, right=right):
            return _BINARY[type(operation)](_walk(left, names), _walk(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, names)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _walk(operand, names)
        case ast.Compare(left=left, ops=operations, comparators=others):
            values = [_walk(part, names) for part in (left, *others)]
            return all(_COMPARE[type(op)](*pair) for op, pair in zip(operations, _pairs(values), strict=True))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_walk(part, names) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_walk(part, names) for part in parts)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _walk(body if _walk(test, names) else orelse, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_walk(part, names) for part in arguments))
    raise ValueError(f"{ast.unparse(node)} is not arithmetic")


def _pairs(values: list[Number]) -> Iterator[tuple[Number, Number]]:
    return itertools.pairwise(values)


_ALLOWED = (
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.USub,
    ast.Not,
    ast.Compare,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.IfExp,
    ast.Call,
    ast.Pow,
    *_BINARY,
    *_COMPARE,
)
