"""What needs other projects' packages: every adapter in an environment of its own, and whether extras resolve."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "external"
NAMES = sorted(
    {path.stem.removeprefix("test_") for path in FOLDER.glob("test_*.py")}
    | {path.stem for path in FOLDER.glob("*.sh") if path.stem != "serving"}
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])
VERIFIERS = "verifiers>=0.4,<0.5"
COMBINATIONS = (("mcp", "model", "export", "tracking"), ("openreward", "export"), ("export", VERIFIERS))
CONFLICTS = (("mcp", "openreward"), ("openreward", VERIFIERS), ("model", VERIFIERS), ("mcp", VERIFIERS))

pytestmark = pytest.mark.external


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_end_to_end(name: str) -> None:
    done = subprocess.run(
        ["bash", "tools/external.sh", name],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if f"{name}: skipped" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout.splitlines()[-1]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("parts", [*((extra,) for extra in EXTRAS), *COMBINATIONS], ids="+".join)
def test_extras_resolve(parts: tuple[str, ...]) -> None:
    done = resolved(*parts)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("parts", CONFLICTS, ids="+".join)
def test_conflicts_that_the_docs_name_are_conflicts(parts: tuple[str, ...]) -> None:
    done = resolved(*parts)
    assert done.returncode != 0 and "ResolutionImpossible" in done.stderr


def resolved(*parts: str) -> subprocess.CompletedProcess[str]:
    """Resolve extras and requirements together, without installing anything."""
    extras = [part for part in parts if part in EXTRAS]
    others = [part for part in parts if part not in EXTRAS]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    named = f"unseen-arena[{','.join(extras)}] @ {ROOT.as_uri()}"
    return subprocess.run([*command, named, *others], capture_output=True, text=True, check=False)
