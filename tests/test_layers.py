"""The architecture holds: imports point down, importing is free, files and functions stay small."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import arena

PACKAGE = Path(arena.__file__).parent
LAYERS = {
    "resources": 0,
    "run_module": 0,
    "extras": 1,
    "python_child": 1,
    "errors": 0,
    "closure": 0,
    "version": 0,
    "model": 1,
    "scores": 2,
    "corpus": 2,
    "scratch": 2,
    "transcripts": 2,
    "process": 2,
    "process_table": 2,
    "error_line": 2,
    "printable": 2,
    "sharing": 2,
    "sandbox": 2,
    "wire": 2,
    "http_server": 2,
    "flags": 3,
    "platforms": 3,
    "toolchains": 3,
    "numerics": 3,
    "semantics": 3,
    "protocol": 3,
    "cross": 4,
    "emulation": 4,
    "worker": 5,
    "judge": 5,
    "agents": 5,
    "service": 6,
    "executors": 7,
    "runs": 7,
    "task_check": 8,
    "reporting": 8,
    "doctor": 8,
    "serve": 8,
    "api": 9,
    "importers": 9,
    "bridges": 10,
    "yardstick": 10,
    "cli": 11,
    "__main__": 12,
}
# What may not be imported although the layer would allow it, and the reason is in DESIGN.
FORBIDDEN = {
    "worker": {"judge", "agents"},
    "judge": {"worker", "agents"},
    "agents": {"judge", "worker", "platforms", "toolchains", "cross", "emulation", "numerics"},
    "reporting": {"judge", "worker", "agents", "service", "platforms", "toolchains", "numerics"},
}
HEAVY = {"torch", "triton", "numpy", "pandas", "matplotlib", "scipy"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
FILES = sorted(PACKAGE.rglob("*.py"))


PAGE = PACKAGE.parent / "docs/develop/architecture.md"


def test_the_page_on_architecture_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: int(layer) for layer, names in rows for name in re.findall(r"`(\w+)`", names)} == LAYERS


def unit(path: Path) -> str:
    """The name of the layer's module that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def arena_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "arena" else [f"arena.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("arena.")}
    return found


def test_imports_point_down() -> None:
    for path in FILES:
        mine = unit(path)
        if mine == "__init__":
            continue
        assert mine in LAYERS, f"{mine} has no layer: add it to the table"
        for other in arena_imports(path) - {mine, "__version__"}:
            assert other in LAYERS, f"{path}: imports arena.{other}, which has no layer"
            peers_may = LAYERS[other] == LAYERS[mine]
            assert LAYERS[other] <= LAYERS[mine], f"{path}: layer {LAYERS[mine]} imports {other} of {LAYERS[other]}"
            assert other not in FORBIDDEN.get(mine, set()), f"{path}: {mine} must not import {other}"
            assert not peers_may or LAYERS[mine] <= 3, f"{path}: {mine} and {other} are peers"


def test_files_and_functions_stay_small() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MAX_FILE_LINES, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                assert node.end_lineno - node.lineno < MAX_FUNCTION_LINES, f"{path}:{node.lineno} {node.name}"


def test_no_class_name_has_two_meanings() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_headers_stay_small() -> None:
    for path in PACKAGE.rglob("*"):
        if path.suffix in (".h", ".hpp", ".cpp", ".j2", ".css"):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES, path


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("module", ["arena", "arena.cli", "arena.cli.app", "arena.runs.runner", "arena.api.evaluation"])
def test_importing_is_light(module: str) -> None:
    assert not loaded_after(f"import {module}") & HEAVY


@pytest.mark.parametrize("module", ["arena.reporting.pages", "arena.reporting.compare", "arena.cli.render"])
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
    assert not {"arena.runs.runner", "arena.runs.config", "arena.runs.records", "arena.agents", "arena.service"} & {
        *done.stdout.split()
    }
