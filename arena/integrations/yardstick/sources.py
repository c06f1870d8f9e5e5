"""Engine modules as syntax trees: which statement defines a name, and from which module another one comes.

Files are parsed and never imported, so an engine need not run on this machine. `bundle` puts definitions together.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arena.errors import FileError, UsageError
from arena.integrations.yardstick.engines import Engine

Statement = ast.stmt
_NEVER_FREE = frozenset(dir(builtins)) | {"__name__", "__file__", "__class__"}


@dataclass(frozen=True)
class Imported:
    """A name that a module imports. `name` is empty where it stands for the module itself."""

    module: str
    name: str = ""


@dataclass
class SourceModule:
    """The statements of one file that bind names at its top level, the first one for each name."""

    name: str
    path: Path
    body: Sequence[Statement] = ()
    definitions: dict[str, Statement] = field(default_factory=dict)
    imports: dict[str, Imported] = field(default_factory=dict)

    def read(self, body: Sequence[Statement]) -> None:
        """Note what statements bind; of branches the first that binds a name counts."""
        for statement in body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for bound, imported in imported_names(statement, self):
                    if bound not in self.definitions:
                        self.imports.setdefault(bound, imported)
            elif isinstance(statement, ast.If | ast.Try | ast.With):
                self.read(statement.body)
                for handler in statement.handlers if isinstance(statement, ast.Try) else ():
                    self.read(handler.body)
                self.read(getattr(statement, "orelse", []))
            else:
                for bound in bound_names(statement):
                    if bound not in self.imports:
                        self.definitions.setdefault(bound, statement)


class Sources:
    """The modules of one engine, each parsed once."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._modules: dict[str, SourceModule] = {}

    def owns(self, module: str) -> bool:
        """Return whether a dotted name is a module of the engine."""
        return module.partition(".")[0] == self.engine.package

    def module(self, name: str) -> SourceModule:
        """Parse a module once; raises `FileError` where the engine has no such file, or it is no Python."""
        if name not in self._modules:
            base = self.engine.root.joinpath(*name.split("."))
            path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
            if not path.is_file():
                raise FileError(path, f"is missing in {self.engine.name} {self.engine.version}")
            self._modules[name] = read_module(name, path)
        return self._modules[name]

    def has(self, name: str) -> bool:
        """Return whether the engine has a module of this dotted name."""
        base = self.engine.root.joinpath(*name.split("."))
        return base.with_suffix(".py").is_file() or (base / "__init__.py").is_file()


def read_module(name: str, path: Path) -> SourceModule:
    """Parse one file; raises `FileError` where it is no Python of this version."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as problem:
        raise FileError(path, problem.msg, line=problem.lineno) from None
    module = SourceModule(name, path, tree.body)
    module.read(tree.body)
    return module


def imported_names(statement: ast.Import | ast.ImportFrom, module: SourceModule) -> Iterator[tuple[str, Imported]]:
    """Yield each name that an import binds, and what it stands for; relative modules are made absolute."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or whole, Imported(whole)
        return
    source = statement.module or ""
    if statement.level:
        parts = module.name.split(".")
        is_package = module.path.name == "__init__.py"
        kept = parts[: len(parts) - statement.level + is_package]
        source = ".".join([*kept, *([source] if source else [])])
    for alias in statement.names:
        if alias.name != "*":
            yield alias.asname or alias.name, Imported(source, alias.name)


def bound_names(statement: Statement) -> Iterator[str]:
    """Yield the names that a statement other than an import binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        for node in ast.walk(target) if isinstance(target, ast.AST) else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def free_names(statement: Statement) -> list[str]:
    """Return the names that a top-level statement needs from its module, sorted."""
    top = symtable.symtable(ast.unparse(statement), "<engine>", "exec")
    # From Python 3.12 on, the variables of a comprehension are among its surroundings' symbols.
    found = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced() and not symbol.is_assigned()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return sorted(found - _NEVER_FREE - set(bound_names(statement)))


def require_name(module: SourceModule, name: str) -> None:
    """Raise `UsageError` unless a module binds a name."""
    if name not in module.definitions and name not in module.imports:
        raise UsageError(
            f"{module.path} binds no `{name}`: the engine has changed. Define it in the adapter, or use a version "
            "that has it"
        )
