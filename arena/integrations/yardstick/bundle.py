"""One candidate file out of an adapter and the engine definitions that it imports, with all that these need.

An adapter is a Python file of ours. Its imports from an engine say which definitions are taken. Any name that it
defines itself, or imports from elsewhere, replaces the engine's; so it keeps out what does not run in a worker.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from arena.errors import UsageError
from arena.integrations.yardstick.preparing import NameReplacer, prepared
from arena.integrations.yardstick.sources import (
    Imported,
    SourceModule,
    Sources,
    Statement,
    bound_names,
    free_names,
    read_module,
    require_name,
)


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
