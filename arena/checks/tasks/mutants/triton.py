"""Faults in Triton sources, found in the syntax tree and made in the text, so that lines and columns stay."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from arena.checks.tasks.mutants.base import Fault, Mutant, SourceChange, mutants

_OPPOSITE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Div: "*"}
_ACCESS = ("load", "store", "atomic_add")
_MAXIMA = ("max", "maximum")


def derive(text: str) -> list[Mutant]:
    """Every mutant of a Triton source. Raises `SyntaxError` where it is not Python."""
    source = _Source(text)
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    edits = [edit for function in functions for line in function.body for edit in _edits(source, line)]
    return mutants(text, edits)


class _Source:
    """Turns positions of nodes (line, and column in UTF-8 bytes) into places in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _edits(source: _Source, statement: ast.stmt) -> Iterator[SourceChange]:
    searches = {id(node.iter) for node in ast.walk(statement) if isinstance(node, ast.For) and _seeks_maximum(node)}
    for node in ast.walk(statement):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _OPPOSITE:
                new = f"{source.of(left)} {_OPPOSITE[type(operator)]} {source.of(right)}"
                yield SourceChange(Fault.BOUND, *source.span(node), new)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SIGNS:
                new = f"{source.of(left)} {_SIGNS[type(operator)]} ({source.of(right)})"
                yield SourceChange(Fault.TERM, *source.span(node), new)
            case ast.AugAssign(target=target, op=ast.Add() | ast.Mult() | ast.Sub(), value=value):
                yield SourceChange(Fault.TERM, *source.span(node), f"{source.of(target)} = {source.of(value)}")
            case ast.Constant(value=float(number)) if number != 0.0:
                yield SourceChange(Fault.CONSTANT, *source.span(node), repr(_other(number)))
            case ast.Call():
                yield from _in_call(source, node)
                if id(node) not in searches:
                    yield from _every_other(source, node)
            case ast.Subscript(slice=ast.Tuple(elts=[first, *_])) if _launches(node):
                yield SourceChange(Fault.LAST, *source.span(first), f"{source.of(first)} - 1")


def _other(number: float) -> float:
    return number * 1.25 + 0.25 if abs(number) != float("inf") else 0.0


def _launches(node: ast.Subscript) -> bool:
    """`kernel[grid]`: what is indexed by a tuple in host code is a kernel, in device code a tensor with None or `:`."""
    assert isinstance(node.slice, ast.Tuple)
    return not any(isinstance(part, ast.Slice) or _is_none(part) for part in node.slice.elts)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _in_call(source: _Source, node: ast.Call) -> Iterator[SourceChange]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _ACCESS:
        yield from _unmasked(source, node)
    if name == "where" and len(node.args) == 3:
        yield SourceChange(Fault.MASK, *source.span(node), f"({source.of(node.args[1])})")
    if name == "range" and len(node.args) == 3:
        start, stop, step = map(source.of, node.args)
        yield SourceChange(Fault.LAST, *source.span(node.args[1]), f"{stop} - {step}")
        yield SourceChange(Fault.LAST, *source.span(node.args[0]), f"{start} + {step}")
    if name in _MAXIMA and ast.unparse(node.func) == f"tl.{name}" and not _bounds_an_index(node):
        yield SourceChange(Fault.MAXIMUM, *source.span(node), f"tl.minimum(tl.maximum({source.of(node)}, 0), 0)")
    if name == "to" and len(node.args) == 1 and isinstance(node.func, ast.Attribute) and not _to_integer(node):
        value = source.of(node.func.value)
        yield SourceChange(Fault.PRECISION, *source.span(node.func.value), f"{value}.to(tl.bfloat16)")
    for left, right in pairwise(node.args):
        if isinstance(left, ast.Name) and isinstance(right, ast.Name) and left.id != right.id:
            between = source.text[source.span(left)[1] : source.span(right)[0]]
            span = source.span(left)[0], source.span(right)[1]
            yield SourceChange(Fault.SWAP, *span, f"{right.id}{between}{left.id}")


def _every_other(source: _Source, node: ast.Call) -> Iterator[SourceChange]:
    """Every second turn of a loop."""
    if ast.unparse(node.func) in ("range", "tl.range") and len(node.args) == 3:
        yield SourceChange(Fault.EVERY_OTHER, *source.span(node.args[2]), f"2 * ({source.of(node.args[2])})")


def _seeks_maximum(loop: ast.For) -> bool:
    """Return whether a loop only looks for a maximum: that of most of a row serves as well to shift exponents."""
    text = ast.unparse(loop)
    return "tl.maximum(" in text and not any(f"tl.{name}(" in text for name in ("dot", "sum", "store", "exp"))


def _bounds_an_index(node: ast.Call) -> bool:
    """`tl.maximum(first, 0)`: where a loop begins."""
    return any(isinstance(argument, ast.Constant) and argument.value == 0 for argument in node.args)


def _to_integer(node: ast.Call) -> bool:
    return ast.unparse(node.args[0]).startswith(("tl.int", "tl.uint"))


def _unmasked(source: _Source, node: ast.Call) -> Iterator[SourceChange]:
    """The access without its mask, and without the value for what is masked off."""
    masks = [keyword for keyword in node.keywords if keyword.arg in ("mask", "other")]
    if any(keyword.arg == "mask" for keyword in masks):
        kept = [source.of(argument) for argument in node.args]
        kept += [f"{k.arg}={source.of(k.value)}" for k in node.keywords if k not in masks]
        yield SourceChange(Fault.MASK, *source.span(node), f"{source.of(node.func)}({', '.join(kept)})")
