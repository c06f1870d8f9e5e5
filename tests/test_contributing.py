"""Every command in docs/contribute/new-task.md, run in order as a contributor would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "contribute" / "new-task.md"
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_walk_through_ends_in_a_green_check(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert sum(block.count("arena ") for block in blocks) >= 6
    environment = {**os.environ, "ARENA_TASKS_DIR": str(tmp_path / "tasks"), "PATH": _path()}
    environment.pop("TRITON_INTERPRET", None)
    script = "\n".join(["set -euo pipefail", *blocks])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=230, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("1 of 1 tasks passed") == 2, done.stdout[-3000:]
    assert "seen.yaml:" in done.stderr and "alpha" in done.stderr, "the promised complaint of step 2"


def _path() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
