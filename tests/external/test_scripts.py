"""Harbor and Inspect end to end: tools/external.sh makes an environment from the extra alone and runs the adapter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.external
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "python"), [("harbor", "python3.12"), ("inspect", sys.executable)])
def test_the_adapter_runs_end_to_end(name: str, python: str, tmp_path: Path) -> None:
    variable = f"{name.upper()}_PYTHON"
    if shutil.which(os.environ.setdefault(variable, python)) is None:
        pytest.skip(f"needs {python}; set {variable}")
    environ = {**os.environ, "PYTHON": sys.executable, "EXTERNAL": str(tmp_path)}
    command = [str(ROOT / "tools" / "external.sh"), name]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{name}: passed" in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
