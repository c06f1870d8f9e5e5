"""The package as a user installs it: a wheel in a fresh environment, used in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
pytestmark = [pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a fresh environment that has the wheel; what the wheel depends on is shared with this one."""
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(place), str(CHECKOUT)]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    (wheel,) = place.glob("unseen_arena-*.whl")
    python = str(place / "env" / "bin" / "python")
    subprocess.run([*pip, "--python", python, "install", "-q", "--no-deps", "--no-index", str(wheel)], check=True)
    (modules,) = (place / "env" / "lib").glob("python*/site-packages")
    (modules / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return place / "env" / "bin" / "arena"


def said(installed: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run([str(installed), *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_tasks_and_agents_travel_with_the_package(installed: Path, tmp_path: Path) -> None:
    assert "196 in all" in said(installed, tmp_path, "tasks", "list")
    assert "mini_swe_agent" in said(installed, tmp_path, "agents")
    (data,) = installed.parents[1].glob("lib/python*/site-packages/arena/data")
    assert (data / "integrations" / "yardsticks" / "vllm" / "normalization" / "rms_norm.py").is_file()


@pytest.mark.slow
def test_the_shipped_quickstart_runs(installed: Path, tmp_path: Path) -> None:
    shown = said(installed, tmp_path, "run", "quickstart", "--tasks", "rms_norm", "--agents", "hardcoded")
    assert "hardcoded" in shown and (tmp_path / "reports" / "quickstart" / "index.html").is_file()
    (record,) = (tmp_path / "runs" / "quickstart" / "trials").rglob("*.json")
    assert '"passed"' in record.read_text(encoding="utf-8")


@pytest.mark.slow
def test_no_candidate_can_read_the_shipped_tasks(installed: Path, tmp_path: Path) -> None:
    """They lie inside the package, which workers import from."""
    (tasks,) = installed.parents[1].glob("lib/python*/site-packages/arena/data/tasks")
    rms_norm = tasks / "triton2triton" / "normalization" / "rms_norm"
    kernel = (rms_norm / "kernel.py").read_text(encoding="utf-8")
    read = "".join(f"open({str(rms_norm / name)!r}).read()\n" for name in ("heldout.yaml", "expert.py"))
    (tmp_path / "reads.py").write_text(f"{kernel}\n{read}", encoding="utf-8")
    done = subprocess.run(
        [str(installed), "evaluate", "rms_norm", "reads.py", "--platform", "cpu", "--no-heldout", "--max-work", "1e4"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and ("FileNotFoundError" in done.stdout or "PermissionError" in done.stdout)
