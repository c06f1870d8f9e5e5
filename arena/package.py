"""The package's own files: folders that travel with it, and the modules that one of its programs needs to run.

A result is kept under the hash of what made it, which is found from the text alone, without importing anything.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
_NAMED = re.compile(r"\barena(?:\.\w+)+")
_DATA = PACKAGE / "data"
"""made when a wheel is built, and in no checkout"""


def resource(name: str) -> Path:
    """Return a folder that travels with the package: in a wheel below `arena/data`, else beside the package.

    Args:
        name: `tasks`, `configs`, `examples` or `integrations/yardsticks`.

    Returns:
        An absolute path, whether or not anything lies there.
    """
    return _beside(PACKAGE, name)


def other_copies() -> tuple[Path, ...]:
    """Return the folders of other copies of the package that modules are imported from.

    One checkout may be installed while another one runs. Both hold the same held-out cases.
    """
    packages = (Path(entry).resolve() / PACKAGE.name for entry in sys.path if entry)
    return tuple(p for p in dict.fromkeys(packages) if p != PACKAGE and (p / "__init__.py").is_file())


def tasks_of_other_copies() -> tuple[Path, ...]:
    """Return their corpora."""
    return tuple(folder for folder in (_beside(package, "tasks") for package in other_copies()) if folder.is_dir())


def _beside(package: Path, name: str) -> Path:
    data = package / "data"
    return data / name if data.is_dir() else package.parent / name


def own_folders() -> tuple[Path, ...]:
    """Return the folders that hold the harness: the package, and the checkout around it where there is one."""
    return (PACKAGE,) if _DATA.is_dir() else (PACKAGE, PACKAGE.parent)


def closure_hash(roots: Iterable[str], *, without: Collection[str] = (), package: Path = PACKAGE) -> str:
    """Return the SHA-256 over names and bytes of the files that these modules need to run.

    Args:
        roots: Modules, as `arena.judge.process.service`.
        without: Modules that are not followed, and so not what they alone need.
        package: The folder of the package `arena`.
    """
    import hashlib

    digest = hashlib.sha256()
    for path in closure_files(roots, without=without, package=package):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def closure_files(roots: Iterable[str], *, without: Collection[str] = (), package: Path = PACKAGE) -> list[Path]:
    """Return the files of these modules, of all that they import or start, and the package data beside them.

    A module counts as needed where an import, also one inside a function, or a text names it: a text is how a child
    process is started (`-m arena.worker.fork_server`). Imports for type checkers alone do not run. Data are the files
    that are no modules. They count where a module of their folder does, or of the nearest above that has modules.
    """
    modules = {_module_name(path, package): path for path in package_files(package) if path.suffix == ".py"}
    left, found = list(roots), set[str]()
    while left:
        name = left.pop()
        if name in found or name in without or name not in modules:
            continue
        found.add(name)
        parent = name.rpartition(".")[0]
        left += [parent] if parent else []
        named = _named_modules(modules[name].read_text(encoding="utf-8"))
        left += [module for text in named if (module := _nearest(text, modules)) not in ("", "arena")]
    folders = {path.parent for path in modules.values()}
    needed = {modules[name].parent for name in found}
    others = (path for path in package_files(package) if path.suffix != ".py")
    data = [path for path in others if next(above for above in path.parents if above in folders) in needed]
    return sorted([*(modules[name] for name in found), *data])


def package_files(package: Path) -> Iterator[Path]:
    """All files but bytecode, pages and, in a wheel, the tasks that travel in `arena/data`."""
    for path in sorted(package.rglob("*")):
        parts = path.relative_to(package).parts
        if path.is_file() and "__pycache__" not in parts and parts[0] != "data" and path.suffix != ".md":
            yield path


def _module_name(path: Path, package: Path) -> str:
    parts = ("arena", *path.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _nearest(name: str, modules: Collection[str]) -> str:
    """Return the module that a dotted name is, or is an attribute of."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


@lru_cache(maxsize=1024)
def _named_modules(text: str) -> frozenset[str]:
    """Return the names of the package that a module's text imports, or has in a text that is no docstring."""
    found: set[str] = set()
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            left += node.orelse
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(_NAMED.findall(node.value))
        left += ast.iter_child_nodes(node)
    return frozenset(name for name in found if name.startswith("arena."))
