"""An installation without an extra: one line says what is missing and what to type, and no candidate is blamed."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import arena
from arena import extras
from arena.errors import UsageError

ROOT = Path(__file__).parents[1]
ARENA = str(Path(sys.executable).with_name("arena"))
RMS_NORM = "tasks/triton2triton/normalization/rms_norm/kernel.py"
SOFTMAX = "tasks/hip2hip/modules/softmax/kernel.hip"
QUICK = ["--platform", "cpu", "--effort", "correctness", "--seeds", "1", "--max-work", "1e4", "--no-heldout"]
HIDES = """
import importlib.metadata
import sys
from importlib.machinery import PathFinder

HIDDEN = {hidden!r}


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == HIDDEN else PathFinder.find_spec(name, path, target)


class Unlisted(importlib.metadata.MetadataPathFinder):
    @classmethod
    def find_distributions(cls, context=importlib.metadata.DistributionFinder.Context()):
        found = importlib.metadata.MetadataPathFinder.find_distributions(context)
        return [one for one in found if one.metadata["Name"].replace("-", "_") != HIDDEN]


sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
Hiding.find_distributions = Unlisted.find_distributions
"""
"""a `sitecustomize.py` in whose processes a module is not installed"""
EVALUATES = "import arena; arena.evaluate('rms_norm', 'x = 1\\n', platform='cpu', heldout=False)"
NEEDS_TORCH = {
    "evaluate": ["evaluate", "rms_norm", RMS_NORM, *QUICK],
    "evaluate auto": ["evaluate", "rms_norm", RMS_NORM],
    "run": ["run", "quickstart", "--tasks", "rms_norm", "--agents", "honest", "--runs-dir", "{folder}"],
    "run devices": ["run", "quickstart", "--devices", "all", "--runs-dir", "{folder}"],
    "serve": ["serve", "rms_norm", "--platform", "cpu", "--runs-dir", "{folder}", "--socket", "{folder}/socket"],
    "check": ["tasks", "check", "rms_norm", "--platform", "cpu", "--out", "{folder}"],
    "timing": ["doctor", "--timing", "--platform", "cpu"],
}


def without(
    module: str, folder: Path, *arguments: str, command: tuple[str, ...] = (ARENA,)
) -> subprocess.CompletedProcess[str]:
    """Run a command of a machine on which a module is not installed."""
    (folder / "sitecustomize.py").write_text(HIDES.format(hidden=module), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    typed = [*command, *(part.format(folder=folder) for part in arguments)]
    return subprocess.run(typed, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110, check=False)


def hint(module: str, extra: str) -> str:
    builds = "; docs/evaluate/quickstart.md says which build of PyTorch fits a machine" if extra == "cpu" else ""
    return (
        f"No module named '{module}'; this needs `pip install 'unseen-arena[{extra}]'`, "
        f"in a checkout `pip install '.[{extra}]'`{builds}"
    )


@pytest.mark.slow(but=["evaluate", "run devices"])
@pytest.mark.parametrize("name", NEEDS_TORCH)
def test_without_pytorch_a_line_says_what_to_type(name: str, tmp_path: Path) -> None:
    done = without("torch", tmp_path, *NEEDS_TORCH[name])
    assert done.stderr.splitlines()[-1] == f"arena: {hint('torch', 'cpu')}"
    assert done.returncode == 2 and "Traceback" not in done.stderr + done.stdout
    assert not (tmp_path / "state").exists()


def test_without_pytorch_the_api_says_so_too(tmp_path: Path) -> None:
    done = without("torch", tmp_path, "-c", EVALUATES, command=(sys.executable,))
    assert done.stderr.splitlines()[-1] == f"arena.errors.UsageError: {hint('torch', 'cpu')}"
    assert "ModuleNotFoundError" not in done.stderr


def test_without_pytorch_doctor_says_so_in_a_row(tmp_path: Path) -> None:
    done = without("torch", tmp_path, "doctor", "--json")
    (row,) = [row for row in rows_of(done.stdout) if row["name"] == "torch"]
    assert not row["present"] and "pip install 'unseen-arena[cpu]'" in str(row["cost"])
    assert done.returncode == 1 and done.stderr == ""


@pytest.mark.parametrize("module", ["triton", "ml_dtypes"])
def test_without_triton_no_candidate_is_blamed(module: str, tmp_path: Path) -> None:
    done = without(module, tmp_path, "evaluate", "rms_norm", RMS_NORM, *QUICK)
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == f"arena: {hint(module, 'cpu')}"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["triton", "ml_dtypes"])
def test_without_triton_hip_tasks_are_evaluated(module: str, tmp_path: Path) -> None:
    done = without(module, tmp_path, "evaluate", "hip2hip/modules/softmax", SOFTMAX, *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["yaml", "typer", "msgspec"])
def test_a_package_that_every_installation_has_is_named_too(module: str, tmp_path: Path) -> None:
    done = without(module, tmp_path, "tasks", "list")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"arena: No module named '{module}'; this needs `pip install unseen-arena`, in a checkout `pip install .`"
    )


def test_every_optional_module_is_an_extra_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {"pyyaml": "yaml", "hip-python": "hip", "inspect-ai": "inspect_ai"}

    def modules(lines: list[str]) -> set[str]:
        names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines]
        return {named.get(name, name) for name in names}

    for module, extra in extras.EXTRAS.items():
        assert module in modules(project["optional-dependencies"][extra]), module
    assert set(extras.ALWAYS) == modules(project["dependencies"])


def test_every_import_of_the_package_is_known() -> None:
    """A module that is neither Python's nor in a table would end in a traceback where it is missing."""
    known = {*sys.stdlib_module_names, *extras.EXTRAS, *extras.ALWAYS, "arena"}
    inside = {"agents/inside", "harbor/inside"}  # programs that run elsewhere
    brought = {"pydantic": "openreward", "anyio": "starlette"}
    for path in sorted(Path(arena.__file__).parent.rglob("*.py")):
        if any(part in str(path) for part in inside) or "scaffold" in str(path):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {name.split(".")[0] for name in names} - known - brought.keys():
                raise AssertionError(f"{path}: {name} is in no table of arena/extras.py")


def test_other_failures_of_imports_are_not_taken_for_missing_packages() -> None:
    assert extras.missing_package(ImportError("libtorch.so: cannot open", name="torch")) is None
    assert extras.missing_package(ModuleNotFoundError("No module named 'mine'", name="mine")) is None
    assert extras.missing_package(ModuleNotFoundError("No module named 'torch.new'", name="torch.new")) is None
    with pytest.raises(UsageError, match=re.escape("pip install 'unseen-arena[openreward]'")):
        raise extras.lacks_extra("openreward", "No module named 'openreward'")


def test_one_place_spells_the_command() -> None:
    for path in sorted(Path(arena.__file__).parent.rglob("*.py")):
        if path.name != "extras.py":
            assert "unseen-arena[" not in path.read_text(encoding="utf-8"), path


def rows_of(text: str) -> list[dict[str, object]]:

    rows: list[dict[str, object]] = json.loads(text)
    return rows
