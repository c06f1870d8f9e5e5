"""Statements of an engine without what only its own package needs: annotations, imports of itself, wrappers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from arena.integrations.yardstick.sources import Imported, SourceModule, Statement, imported_names

_DROPPED = ("torch.compile", "torch.compiler", "torch.library", "torch.inference_mode", "torch.no_grad")
"""beginnings of decorators of host functions that a worker has no use for"""


def prepared(
    statement: Statement, module: SourceModule, owns: Callable[[str], bool]
) -> tuple[Statement, Mapping[str, Imported]]:
    """Return a copy of a statement without imports of its own package, and what these bound.

    Host functions also lose their annotations, whose types would otherwise be taken along. Those of Triton kernels
    stay, since they change what is compiled.
    """
    copy = ast.parse(ast.unparse(statement)).body[0]
    cleaner = _Cleaner(module, owns)
    cleaned = cleaner.visit(copy)
    assert isinstance(cleaned, ast.stmt)
    return ast.fix_missing_locations(cleaned), cleaner.imports


def is_kernel(function: ast.FunctionDef) -> bool:
    """Return whether a function is decorated as a Triton kernel."""
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


class _Cleaner(ast.NodeTransformer):
    """Walks over one statement, and keeps what it removed of imports."""

    def __init__(self, module: SourceModule, owns: Callable[[str], bool]) -> None:
        self._module, self._owns = module, owns
        self.imports: dict[str, Imported] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Clean a host function, and leave a kernel as it is."""
        if is_kernel(node):
            return node
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            argument.annotation = None
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                extra.annotation = None
        node.returns = None
        node.decorator_list = [one for one in node.decorator_list if not ast.unparse(one).startswith(_DROPPED)]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Make it a plain assignment; fields of classes stay as they are."""
        if node.value is None:
            return ast.Pass()
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Clean methods alone."""
        node.body = [self.visit(part) if isinstance(part, ast.FunctionDef) else part for part in node.body]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """Remove an import of the engine, whose names become global ones."""
        found = dict(imported_names(node, self._module))
        if not any(self._owns(one.module) for one in found.values()):
            return node
        self.imports.update(found)
        return ast.Pass()


class NameReplacer(ast.NodeTransformer):
    """Gives global names of one statement those of the candidate."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a use or an assignment."""
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Replace the name of a definition, and go on inside it."""
        node.name = self._names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Replace the name of a class, and go on inside it."""
        node.name = self._names.get(node.name, node.name)
        return self.generic_visit(node)
