"""Trials of a run in trackio, on this machine, read back from its file."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("trackio") is None:
    pytest.skip("needs the extra `tracking`; run tools/external.sh tracking", allow_module_level=True)

_PROGRAM = """
from arena.integrations.tracking import TrackedRun, tracker_called
from arena.results.verdict import Status
from arena.runs.runner import Watcher
from tests.reports import builders as b

with TrackedRun(Watcher(), tracker_called("trackio"), "monday", {"tasks": 2}) as watcher:
    watcher.finished(b.trial(cases=[b.case(speedup=2.0)]))
    watcher.finished(b.trial("hip2hip/moe/other", Status.COMPILE_ERROR))
"""


def test_points_are_stored(tmp_path: Path) -> None:
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, check=True, timeout=100)
    with sqlite3.connect(tmp_path / "unseen-arena.db") as stored:
        found = stored.execute("SELECT run_name, metrics FROM metrics ORDER BY step").fetchall()
    assert [name for name, _ in found] == ["monday", "monday"]
    points = [json.loads(text) for _, text in found]
    assert [point["alpha/reward"] for point in points] == [1.0, -5.0]
    assert [point.get("alpha/speedup") for point in points] == [2.0, None]
