"""Find the parts of a Python candidate that can run when it is loaded and its entry called; `rules.py` checks these.

A file often holds its own tests, a benchmark or a reference model. What only these import takes no part in an
evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

_LOOKUPS = frozenset(
    {
        *("globals", "locals", "vars", "eval", "exec", "compile", "modules", "inspect", "gc", "operator", "pickle"),
        *("__dict__", "__globals__", "__builtins__", "__main__", "__subclasses__", "candidate", "_getframe"),
    }
)
"""names by which code can find a function without naming it: where one occurs, all code is live"""
_CONSTANTS = frozenset({"TYPE_CHECKING", "__name__"})
_Unit = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def live_nodes(tree: ast.Module, called: Collection[str]) -> Iterator[ast.AST]:
    """Yield each node of the code that may run, outer nodes first.

    A function or class at the top of the file is live if the judge calls it, it is decorated, or live code names it.
    So are methods of a live class. The blocks under `if __name__ == "__main__"` and `if TYPE_CHECKING` are not live.

    Args:
        tree: the file
        called: names that the judge calls

    Yields:
        The nodes of live code; a node may come twice.
    """
    if _assigned(tree) & _CONSTANTS:
        yield from ast.walk(tree)
        return
    own = frozenset(statement.name for statement in ast.walk(tree) if isinstance(statement, _Unit))
    waiting: dict[str, list[_Unit]] = {}
    todo: list[ast.AST] = []
    for statement in _unguarded(tree.body):
        if isinstance(statement, _Unit) and not _runs_at_once(statement, own):
            waiting.setdefault(statement.name, []).append(statement)
            todo += _evaluated_at_once(statement)
        else:
            todo.append(statement)
    wanted = set(called)
    while todo or wanted & waiting.keys():
        for name in wanted & waiting.keys():
            todo += waiting.pop(name)
        for start in todo:
            for node in ast.walk(start):
                wanted |= _names(node)
                yield node
        todo = []
        if wanted & _LOOKUPS:
            yield from ast.walk(tree)
            return


def _unguarded(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module without those that run only as a script or for a type checker."""
    for statement in body:
        if isinstance(statement, ast.If) and _never_true(statement.test):
            yield from _unguarded(statement.orelse)
        else:
            yield statement


def _never_true(test: ast.expr) -> bool:
    """Return whether a condition is false in a worker, which loads the file as a module."""
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        return [type(op) for op in test.ops] == [ast.Eq] and set.union(*map(_names, sides)) == {"__name__", "__main__"}
    return isinstance(test, ast.Name | ast.Attribute) and _names(test) == {"TYPE_CHECKING"}


def _runs_at_once(unit: _Unit, own: frozenset[str]) -> bool:
    """Return whether to define this may call it: a decorator gets it, and so do its metaclass and own base classes."""
    if unit.decorator_list:
        return True
    return isinstance(unit, ast.ClassDef) and bool(
        unit.keywords or any(_names(node) & own for base in unit.bases for node in ast.walk(base))
    )


def _evaluated_at_once(unit: _Unit) -> list[ast.AST]:
    """Return the parts of an undecorated definition that are evaluated where it stands."""
    if not isinstance(unit, ast.ClassDef):
        return [unit.args, *([unit.returns] if unit.returns else [])]
    parts: list[ast.AST] = list(unit.bases)
    for statement in unit.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            parts += [*statement.decorator_list, *_evaluated_at_once(statement)]
        else:
            parts.append(statement)
    return parts


def _names(node: ast.AST) -> set[str]:
    """Return what a node itself names; a string may be the name of an attribute."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.alias):
        return {*node.name.split(".")}
    return set()


def _assigned(tree: ast.Module) -> set[str]:
    """Return the names and attributes that the file assigns."""
    return {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
        for name in _names(node)
    }
