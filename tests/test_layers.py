"""The architecture holds: imports point down, importing is free, every room says what it is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import arena

PACKAGE = Path(arena.__file__).parent
ROOMS = {
    "semantics": 1,
    "results": 1,
    "task": 2,
    "processes": 2,
    "platforms": 3,
    "judge": 4,
    "worker": 4,
    "agents": 4,
    "runs": 5,
    "checks": 6,
    "reports": 6,
    "api": 7,
    "integrations": 8,
    "cli": 9,
}
"""folders of the package, and the height of each: imports point down"""
MOST_ROOMS = 14
BESIDE = {"package": 0, "errors": 0, "extras": 0, "version": 0, "__main__": 10}
"""modules beside the rooms: facts of the package itself, which every room may need; and what starts it"""
LAYERS = {**ROOMS, **BESIDE}
FORBIDDEN = {
    "agents": ("judge", "worker", "platforms", "task.numerics"),
    "judge": ("worker", "agents"),
    "processes": ("task",),
    "reports": ("judge", "worker", "agents", "platforms", "task.numerics", "checks"),
    "task": ("processes",),
    "worker": ("judge", "agents"),
}
"""imports that the height would allow or that are peers, by prefix; docs/develop/isolation.md says why"""
HEAVY = {"torch", "triton", "numpy", "pandas", "matplotlib", "scipy"}
FILES = sorted(PACKAGE.rglob("*.py"))


PAGE = PACKAGE.parent / "docs/develop/architecture.md"


def importers(room: str) -> list[str]:
    """Return the rooms that may import one."""
    above = [other for other, height in ROOMS.items() if height > ROOMS[room]]
    return [other for other in above if room not in FORBIDDEN.get(other, ())]


def drawing() -> str:
    """Return the rooms as lines, the highest first; imports point down."""
    heights = sorted({*ROOMS.values()}, reverse=True)
    rows = ["   ".join(room for room, height in ROOMS.items() if height == row) for row in heights]
    width = max(map(len, rows))
    return "\n".join(["```text", *(row.center(width).rstrip() for row in rows), "```"])


def test_there_are_few_rooms_and_all_have_a_layer() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.name != "data" and any(path.rglob("*.py"))}
    assert folders == {*ROOMS} and len(folders) <= MOST_ROOMS
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    assert modules - {"__init__"} == {*BESIDE}


def test_the_page_on_architecture_has_the_drawing() -> None:
    assert drawing() in PAGE.read_text(encoding="utf-8"), f"write into {PAGE.name}:\n{drawing()}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_holds_where_to_begin_and_who_may_import_it(room: str) -> None:
    page = (PACKAGE / room / "README.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {room}\n") and len(page.splitlines()) <= 14
    (first,) = re.findall(r"^Read first: `([\w/.]+)`", page, re.MULTILINE)
    assert (PACKAGE / room / first).is_file()
    (allowed,) = re.findall(r"^May be imported by: (.*)\.$", page, re.MULTILINE)
    assert [name.strip("`") for name in allowed.split(", ")] == (importers(room) or ["nothing else"])
    for name in re.findall(r"`([\w/]+(?:/|\.py))`", page):
        assert (PACKAGE / room / name).exists() or (PACKAGE / name).exists(), name


def unit(path: Path) -> str:
    """The name of the layer's module that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def arena_imports(path: Path) -> set[str]:
    """Return the dotted names that a module imports from the package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "arena" else [f"arena.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.removeprefix("arena.") for name in names if name.startswith("arena.")}
    return found


def test_imports_point_down() -> None:
    for path in FILES:
        mine = unit(path)
        if mine == "__init__":
            continue
        for name in arena_imports(path):
            other = name.split(".")[0]
            if other in (mine, "__version__"):
                continue
            assert other in LAYERS, f"{path}: imports arena.{other}, which has no layer"
            assert LAYERS[other] <= LAYERS[mine], f"{path}: {mine} imports {name}, which is above it"
            assert LAYERS[other] < LAYERS[mine] or LAYERS[mine] <= 1, f"{path}: {mine} and {other} are peers"
            for prefix in FORBIDDEN.get(mine, ()):
                assert not f"{name}.".startswith(f"{prefix}."), f"{path}: {mine} must not import {prefix}"


def test_no_class_name_has_two_meanings() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("module", ["arena", "arena.cli", "arena.cli.app", "arena.runs.runner", "arena.api.evaluation"])
def test_importing_is_light(module: str) -> None:
    assert not loaded_after(f"import {module}") & HEAVY


@pytest.mark.parametrize("module", ["arena.reports.pages", "arena.reports.compare", "arena.cli.render"])
def test_reporting_needs_no_torch(module: str) -> None:
    assert not loaded_after(f"import {module}") & {"torch", "triton"}


def test_text_is_read_and_written_in_a_named_encoding() -> None:
    """Where nothing is said, it is the locale's: ASCII for `LC_ALL=C`."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).rsplit(".", 1)[-1]
                said = {one.arg: ast.unparse(one.value) for one in node.keywords}
                text = called in ("read_text", "write_text") or said.get("text") == "True"
                assert "encoding" in said or not text, f"{path}:{node.lineno}: {called} without an encoding"


def test_only_the_command_line_prints_or_exits() -> None:
    for path in FILES:
        if unit(path) == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "sys.exit", "exit", "quit"), f"{path}:{node.lineno}: {called}"


def test_a_single_evaluation_imports_no_run() -> None:
    code = "import sys; import arena.api.evaluation; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {
        "arena.runs.runner",
        "arena.runs.config",
        "arena.runs.records",
        "arena.agents",
        "arena.runs.service",
    } & {*done.stdout.split()}
