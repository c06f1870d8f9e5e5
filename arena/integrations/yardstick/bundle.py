"""One candidate file out of an adapter and the engine definitions that it imports, with all that these need.

An adapter is a Python file of ours. Its imports from an engine say which definitions are taken. Any name that it
defines itself, or imports from elsewhere, replaces the engine's; so it keeps out what does not run in a worker.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.errors import UsageError
from arena.integrations.yardstick.sources import (
    Imported,
    SourceModule,
    Sources,
    Statement,
    bound_names,
    free_names,
    imported_names,
    read_module,
    require_name,
)

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


@dataclass(frozen=True)
class CandidateText:
    """A candidate, and the engine files that it needs, relative to the engine's root.

    `defining` are those that definitions come from, and `files` also those that only import them.
    """

    text: str
    defining: tuple[Path, ...]
    files: tuple[Path, ...]


def bundle(adapter: Path, sources: Sources, replacements: Path | None = None) -> CandidateText:
    """Put an adapter and what it takes from an engine into one file.

    Args:
        adapter: our Python file, which imports from the engine's package.
        sources: the engine.
        replacements: a Python file with definitions that replace the engine's in each of its adapters.

    Returns:
        Text that imports neither the engine nor the project.

    Raises:
        FileError: a file is missing, or is no Python.
        UsageError: a name cannot be resolved.
    """
    return _Bundle(adapter, sources, replacements).candidate()


class _Bundle:
    """Definitions in the order in which they are needed, each under a name of its own."""

    def __init__(self, adapter: Path, sources: Sources, replacements: Path | None) -> None:
        self._sources = sources
        self._own = read_module("adapter", adapter)
        self._shared = read_module("replacements", replacements) if replacements else SourceModule("", adapter)
        self._asked = {taken.name for taken in self._own.imports.values() if sources.owns(taken.module)}
        outside = {name for name, taken in self._own.imports.items() if not sources.owns(taken.module)}
        self._own_names = outside | set(self._own.definitions)
        self._names: dict[tuple[str, str], str] = {(self._own.name, name): name for name in self._own.definitions}
        self._taken = {name: key for key, name in self._names.items()}
        self._imports: dict[str, str] = {}
        self._parts: list[str] = []
        self._done: set[int] = set()
        self._defining: set[Path] = set()
        self._files: set[Path] = set()

    def candidate(self) -> CandidateText:
        """Write every statement of the adapter, each after what it needs."""
        for statement in self._own.body:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not isinstance(statement, ast.Import | ast.ImportFrom) and not is_text:
                self._write(self._own, statement)
        text = "".join(f"{line}\n" for line in sorted(self._imports.values())) + "".join(self._parts)
        root = self._sources.engine.root
        defining, files = (tuple(sorted(p.relative_to(root) for p in found)) for found in (self._defining, self._files))
        return CandidateText(text, defining, files)

    def _resolve(self, module: SourceModule, name: str) -> str:
        """Return the name under which the candidate knows a name of a module; bring in what it stands for."""
        if module not in (self._own, self._shared):
            self._files.add(module.path)
            if name in self._own_names and name not in self._asked:
                module = self._own
            elif name in self._shared.definitions:
                module = self._shared
        if name in module.definitions:
            return self._define(module, name)
        require_name(module, name)
        imported = module.imports[name]
        if not self._sources.owns(imported.module):
            return self._import(name, imported)
        if not imported.name or self._sources.has(f"{imported.module}.{imported.name}"):
            raise UsageError(f"{module.path} uses the module `{name}` of the engine: define `{name}` in the adapter")
        return self._resolve(self._sources.module(imported.module), imported.name)

    def _import(self, name: str, imported: Imported) -> str:
        """Import a name of another package; two meanings of one name are refused."""
        source = f"from {imported.module} import {imported.name}" if imported.name else f"import {imported.module}"
        line = source if name in (imported.name, imported.module) else f"{source} as {name}"
        if self._imports.setdefault(name, line) != line:
            raise UsageError(f"`{name}` has two meanings: {self._imports[name]}; {line}. Define it in the adapter")
        return name

    def _define(self, module: SourceModule, name: str) -> str:
        """Return the name of a definition in the candidate; a name that is taken is made another."""
        key = (module.name, name)
        if key not in self._names:
            statement = module.definitions[name]
            for bound in bound_names(statement):
                chosen = bound
                while chosen in self._taken:
                    chosen += "_of_engine"
                self._taken[chosen] = (module.name, bound)
                self._names[module.name, bound] = chosen
            self._write(module, statement)
        elif module is self._own:
            self._write(module, module.definitions[name])
        return self._names[key]

    def _write(self, module: SourceModule, statement: Statement) -> None:
        """Write a statement once, after all that it needs."""
        if id(statement) in self._done:
            return
        self._done.add(id(statement))
        copy, imports = prepared(statement, module, self._sources.owns)
        for name, imported in imports.items():
            module.imports.setdefault(name, imported)
        renamed = {name: self._resolve(module, name) for name in free_names(copy)}
        for bound in bound_names(copy):
            renamed[bound] = self._names.get((module.name, bound), bound)
        text = ast.unparse(NameReplacer(renamed).visit(copy))
        long = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        self._parts.append(f"\n\n{text}\n" if long else f"{text}\n")
        if module not in (self._own, self._shared):
            self._defining.add(module.path)
