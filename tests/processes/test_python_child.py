"""Nothing that lies in the current folder is imported by the command or by a process that it starts."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import msgspec
import pytest

import arena
from arena.processes.python_child import leave_start_folder, python_code, python_environment, python_module
from arena.task.corpus.task_folder import TASKS

PACKAGE = Path(arena.__file__).parent
ROOT = PACKAGE.parent
COMMAND = [str(Path(sys.executable).with_name("arena"))]
MODULE = [sys.executable, "-m", "arena"]
QUICK = ["--platform", "cpu", "--effort", "correctness", "--seeds", "1", "--max-work", "1e4", "--no-heldout"]
KERNELS = {"hip2hip/modules/softmax": "kernel.hip", "triton2triton/normalization/rms_norm": "kernel.py"}
PLANTED = """
with open({marker!r}, "a") as file:
    file.write(__name__ + "\\n")
raise ImportError("a file beside the kernel was imported: " + __name__)
"""
OF_PYTHON = "import sys; print(*sys.modules)"
"""run by `-m`: what Python itself imports from the current folder then, before any code of a package"""
SHOWN = "import arena, os, sys; print(arena.__file__, [os.path.abspath(entry) for entry in sys.path], sys.argv[1:])"


def dependencies() -> Iterator[str]:
    """The modules of what the package and its extras need, as far as they are installed."""
    needed = {re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in requires("unseen-arena") or ()}
    names = {re.sub(r"[-_.]+", "-", name).lower() for name in needed}
    for module, distributions in packages_distributions().items():
        if names & {re.sub(r"[-_.]+", "-", name).lower() for name in distributions} and module.isidentifier():
            yield module


def plant(folder: Path, marker: Path, modules: set[str]) -> None:
    for module in modules:
        (folder / f"{module}.py").write_text(PLANTED.format(marker=str(marker)), encoding="utf-8")


def imported_by_python(folder: Path) -> set[str]:
    """What `python -m` imports before a package has its turn."""
    (folder / "nothing").mkdir()
    for name, text in (("__init__", ""), ("__main__", OF_PYTHON)):
        (folder / "nothing" / f"{name}.py").write_text(text, encoding="utf-8")
    asked = [sys.executable, "-m", "nothing"]
    return set(subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("task", KERNELS)
@pytest.mark.parametrize("command", [COMMAND, MODULE], ids=["command", "module"])
def test_files_beside_a_kernel_are_not_imported(tmp_path: Path, command: list[str], task: str) -> None:
    beside, marker = tmp_path / "beside", tmp_path / "imported"
    beside.mkdir()
    shutil.copy(TASKS / task / KERNELS[task], beside)
    planted = {*sys.stdlib_module_names, *dependencies(), "sitecustomize", "usercustomize"}
    assert {"yaml", "torch", "triton", "msgspec", "random", "json"} <= planted
    plant(beside, marker, planted - imported_by_python(tmp_path) if command is MODULE else planted)
    typed = [*command, "evaluate", task, KERNELS[task], *QUICK, "--json"]
    done = subprocess.run(typed, cwd=beside, capture_output=True, text=True, timeout=280, check=False)
    assert not marker.exists(), f"{marker.read_text()}\n{done.stderr}"
    assert done.returncode == 0, done.stdout + done.stderr
    assert msgspec.json.decode(done.stdout)["stage_status"] == "passed"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_judges_on_a_cluster_import_nothing_from_the_folder_either(tmp_path: Path) -> None:
    beside, marker = tmp_path / "beside", tmp_path / "imported"
    beside.mkdir()
    plant(beside, marker, {"arena", "jsonschema", "msgspec", "torch", "yaml"})
    typed = [*COMMAND, "run", "quickstart", "--agents", "honest", "--tasks", "rms_norm", "--no-report"]
    typed += ["--executor", "ray", "--runs-dir", str(tmp_path / "runs")]
    done = subprocess.run(typed, cwd=beside, capture_output=True, text=True, timeout=280, check=False)
    assert not marker.exists() and done.returncode == 0, done.stdout + done.stderr


def test_a_child_runs_this_copy_and_imports_nothing_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "arena").mkdir()
    (tmp_path / "arena" / "__init__.py").write_text("raise ImportError('another copy')", encoding="utf-8")
    marker = tmp_path / "imported"
    plant(tmp_path, marker, {"yaml", "runpy", "importlib", "shown"})
    library = tmp_path / "library"
    library.mkdir()
    (library / "shown.py").write_text(SHOWN, encoding="utf-8")
    environment = python_environment({**os.environ, "PYTHONPATH": f":{library}:"})
    asked = python_module("shown", "-x", "two words")
    done = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(PACKAGE / "__init__.py"))
    assert f"'{tmp_path}'" not in done.stdout and f"'{library}'" in done.stdout
    assert done.stdout.endswith("['-x', 'two words']\n") and not marker.exists()


def test_children_of_a_child_import_nothing_from_their_folder(tmp_path: Path) -> None:
    marker = tmp_path / "imported"
    plant(tmp_path, marker, {"yaml"})
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import yaml'], check=True)"
    subprocess.run(python_code(code), cwd=tmp_path, env=python_environment(), check=True)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, None),
        ({"PYTHONPATH": ""}, None),
        ({"PYTHONPATH": os.pathsep}, None),
        ({"PYTHONPATH": f"{os.pathsep}/one{os.pathsep}{os.pathsep}/two"}, f"/one{os.pathsep}/two"),
        ({"PYTHONPATH": "one"}, str(Path.cwd() / "one")),
    ],
)
def test_an_empty_entry_is_no_folder(given: dict[str, str], kept: str | None) -> None:
    found = python_environment({"A": "b", **given})
    assert (found["A"], found["PYTHONSAFEPATH"], found.get("PYTHONPATH")) == ("b", "1", kept)


@pytest.mark.skipif(sys.flags.safe_path, reason="this Python adds no folder")
def test_only_the_folder_that_python_added_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for first, script, kept in (
        ("", "-c", ["/lib"]),
        (str(Path.cwd()), "-m", ["/lib"]),
        ("/nowhere/bin", "/nowhere/bin/arena", ["/lib"]),
        ("/mine", "/nowhere/bin/arena", ["/mine", "/lib"]),
    ):
        monkeypatch.setattr(sys, "path", [first, "/lib"])
        monkeypatch.setattr(sys, "argv", [script])
        leave_start_folder()
        assert sys.path == kept


def starts_python(node: ast.AST) -> bool:
    """Whether it spells a command line of Python: `sys.executable` followed by `-m` or `-c`, and no isolated mode."""
    if not isinstance(node, ast.List | ast.Tuple):
        return False
    parts = [ast.unparse(part) for part in node.elts]
    return "sys.executable" in parts and bool({"'-m'", "'-c'"} & {*parts}) and "'-I'" not in parts


@pytest.mark.parametrize("folder", ["arena", "tools"])
def test_one_helper_starts_python(folder: str) -> None:
    helper = PACKAGE / "processes" / "python_child.py"
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if path != helper and starts_python(node):
                line = getattr(node, "lineno", 0)
                raise AssertionError(f"{path}:{line}: use python_child, which imports nothing from the folder")
