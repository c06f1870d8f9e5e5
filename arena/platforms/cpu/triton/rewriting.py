"""A second pass over a kernel's source, for what Python's own semantics get wrong on tensors.

Compiled Triton makes a loop's counter an int32 tensor and reads `and`, `or`, `not` element by element; Python
yields plain integers, and asks a whole block for one truth value, which the interpreter answers with True.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from arena.platforms.cpu.triton.internals import Internals

_RANGE, _ALL, _ANY, _NOT = "_mended_range", "_mended_and", "_mended_or", "_mended_not"
_TRUTH = "_mended_truth"


class SourceMends(ast.NodeTransformer):
    """Replaces `range` in loops, `and`, `or`, `not` and conditions by calls of the functions that `mend` provides."""

    def visit_For(self, node: ast.For) -> ast.AST:
        """Only `range` by its bare name, which is Python's."""
        self.generic_visit(node)
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
            call.func.id = _RANGE
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        """A condition."""
        return self._conditional(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """A condition."""
        return self._conditional(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """A condition."""
        return self._conditional(node)

    def _conditional(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = ast.copy_location(_call(_TRUTH, [node.test]), node.test)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`and` and `or`, each operand in a lambda: constants still cut the chain short."""
        self.generic_visit(node)
        if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
            return node  # inside a lambda the name would be bound to the lambda
        thunks: list[ast.expr] = [_lambda(value) for value in node.values]
        return ast.copy_location(_call(_ALL if isinstance(node.op, ast.And) else _ANY, thunks), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not`."""
        self.generic_visit(node)
        return ast.copy_location(_call(_NOT, [node.operand]), node) if isinstance(node.op, ast.Not) else node


def _call(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=args, keywords=[])


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(
        args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), body=body
    )


class _BothPasses:
    """Triton's own rewriting, then ours; stands where the interpreter keeps its transformer."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def visit(self, tree: ast.AST) -> Any:
        return SourceMends().visit(self._own.visit(tree))


def mend(at: Internals) -> None:
    """Add the second pass, and the functions that it calls."""
    rewriter = at.member(at.interpreter, "FunctionRewriter")
    at.replace(rewriter, "ast_transformer", _BothPasses(at.member(rewriter, "ast_transformer")))
    # The interpreter copies its module's names into the globals of every function that it rewrites.
    at.interpreter._mended_range = counting_range(at)
    at.interpreter._mended_and = _chain(at, stop_at=False)
    at.interpreter._mended_or = _chain(at, stop_at=True)
    at.interpreter._mended_truth = _truth(at)
    at.interpreter._mended_not = lambda value: value == 0 if at.is_tensor(value) else not at.constant(value)


def counting_range(at: Internals) -> Callable[..., Iterator[Any]]:
    """`range` whose counter is a scalar tensor of the widest bound's type, at least int32."""

    def counting(*bounds: Any, step: Any = None, **_: Any) -> Iterator[Any]:
        bounds = bounds if step is None else (*((0,) if len(bounds) == 1 else ()), *bounds, step)
        typed = [bound.dtype for bound in bounds if at.is_tensor(bound)]
        numbers = [int(at.constant(bound).__index__()) for bound in bounds]
        wide = [dtype for dtype in typed if dtype.primitive_bitwidth == 64]
        dtype = wide[0] if wide else at.tl.int32
        if not wide and not all(-(2**31) <= number < 2**31 for number in numbers):
            dtype = at.tl.int64
        numpy_type = at.np_dtype(dtype).type
        for number in range(*numbers):
            yield at.tensor(numpy_type(number), dtype)

    return counting


def _truth(at: Internals) -> Callable[[Any], Any]:
    """A condition's value; a block has none, which is a compile error on a GPU."""

    def truth(value: Any) -> Any:
        if at.is_tensor(value) and value.handle.data.size != 1:
            raise ValueError("the boolean value of a tensor with more than one element is ambiguous")
        return value

    return truth


def _chain(at: Internals, *, stop_at: bool) -> Callable[..., Any]:
    """`and` (stops at False) or `or` (stops at True): element by element on tensors, Python's own on constants."""

    def as_mask(value: Any) -> Any:
        if not at.is_tensor(value):
            return bool(at.constant(value))
        return value if value.dtype == at.tl.int1 else value != 0

    def chain(*parts: Callable[[], Any]) -> Any:
        result: Any = None
        for part in parts:
            value = part()
            if at.is_tensor(result):
                mask = as_mask(value)
                result = result | mask if stop_at else result & mask
            elif at.is_tensor(value):
                result = as_mask(value)
            elif bool(at.constant(value)) is stop_at:
                return value
            else:
                result = value
        return result

    return chain
