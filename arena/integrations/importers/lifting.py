"""Statements that set sizes, with the sizes taken out: literals become parameters of a function."""

from __future__ import annotations

import ast
import dis
import types
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from arena.integrations.importers.problem import RESERVED

_LEAST_LITERAL = 16
"""a number in a call that makes inputs which is smaller than this is a constant"""
_MAKERS = frozenset({"rand", "randn", "randint", "empty", "zeros", "ones"})


class Lifted:
    """Statements whose literal sizes are names, and the value of each name."""

    def __init__(
        self, statements: Sequence[ast.stmt], taken: Iterable[str], fixed: Iterable[str], only: Container[str] | None
    ) -> None:
        """Take out the sizes of `statements`: none that `fixed` names, and, where `only` is given, none but those."""
        self.sizes: dict[str, int] = {}
        self._only = only
        self._taken = {*taken, *RESERVED}
        self._fixed = set(fixed)
        last = {name: number for number, one in enumerate(statements) for name in _targets(one)}
        # A parameter that an earlier statement overwrites would be lost.
        counts = Counter(name for one in statements for name in _targets(one))
        self._taken |= {name for name, count in counts.items() if count > 1}
        self.statements = [self._lift(one, number, last) for number, one in enumerate(statements)]

    def _lift(self, statement: ast.stmt, number: int, last: Mapping[str, int]) -> ast.stmt:
        """The statement with names for literals, unless a later one sets the same name."""
        if not isinstance(statement, ast.Assign) or any(last[name] != number for name in _targets(statement)):
            return statement
        target = statement.targets[0]
        value = statement.value
        if isinstance(target, ast.Name):
            if isinstance(value, (ast.Tuple, ast.List)):
                value.elts = [self._named(f"{target.id}_{n}", one, target.id) for n, one in enumerate(value.elts)]
            else:
                statement.value = self._named(target.id, value, target.id)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            value.elts = [
                self._named(to.id, one, to.id) if isinstance(to, ast.Name) else one
                for to, one in zip(target.elts, value.elts, strict=True)
            ]
        return statement

    def _named(self, name: str, value: ast.expr, target: str) -> ast.expr:
        size = whole_number(value)
        if size is None or size < 1 or target in self._fixed:
            return value
        return self._parameter(self._free(name), size, value)

    def _free(self, name: str) -> str:
        """Return a name that nothing has, this one if it is free."""
        wanted = name.lstrip("_") or "size"
        while wanted in self._taken:
            wanted += "_size"
        self._taken.add(wanted)
        return wanted

    def _parameter(self, name: str, size: int, value: ast.expr) -> ast.expr:
        if self._only is not None and name not in self._only:
            return value
        self.sizes[name] = size
        return ast.Name(name, ast.Load())

    def lift_calls(self, statements: Sequence[ast.stmt]) -> None:
        """Name large literals in calls that make tensors; equal numbers are one size."""
        names: dict[int, str] = {}
        for node in (node for one in statements for node in ast.walk(one)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MAKERS:
                node.args = [self._literal(argument, names) for argument in node.args]

    def _literal(self, node: ast.expr, names: dict[int, str]) -> ast.expr:
        if isinstance(node, (ast.Tuple, ast.List)):
            node.elts = [self._literal(one, names) for one in node.elts]
            return node
        size = whole_number(node)
        if size is None or size < _LEAST_LITERAL:
            return node
        if size not in names:
            names[size] = self._free("size")
        return self._parameter(names[size], size, node)


def whole_number(node: ast.expr) -> int | None:
    """Return the value of a literal whole number, or of a product or sum of such; None for anything else."""
    if not all(
        isinstance(n, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)) for n in ast.walk(node)
    ):
        return None
    try:
        value = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<size>", "eval"), {"__builtins__": {}})
    except Exception:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _targets(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def sets_any(statement: ast.stmt, names: Container[str]) -> bool:
    """Return whether a statement assigns one of these names."""
    return any(name in names for name in _targets(statement))


def globals_used(definitions: Sequence[ast.stmt]) -> set[str]:
    """Return the global names that functions and classes read when they run."""
    module = ast.fix_missing_locations(ast.Module(list(definitions), []))
    found: set[str] = set()
    left: list[types.CodeType] = [compile(module, "<definitions>", "exec")]
    while left:
        code = left.pop()
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                left.append(constant)
                found |= {i.argval for i in dis.get_instructions(constant) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found


def function_text(name: str, parameters: Iterable[str], statements: Sequence[ast.stmt]) -> str:
    """Return a function of these statements as text; an assignment of a name to itself is left out."""
    body = [one for one in statements if not _is_self_assignment(one)]
    lines = [line for one in body for line in ast.unparse(ast.fix_missing_locations(one)).splitlines()]
    return "\n".join([f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in lines)]) + "\n"


def _is_self_assignment(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Name)
        and [ast.unparse(target) for target in statement.targets] == [statement.value.id]
    )
