"""The clock on the wall is stepped: nothing measures or waits by it."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest

import arena
from arena.judge.process.client import JudgeClient
from arena.results.verdict import Status
from tests.fakes import FakeEvaluator
from tests.faults.runs import RMS_NORM, Faulty, check, in_python

STEPPING = Path(__file__).parent / "stepping"
WALL_CLOCKS = {"time.time", "time.time_ns", "time.localtime", "time.ctime", "datetime.now", "datetime.utcnow"}
# A date in a record or in a name: nothing is computed from it.
MAY_READ_IT = {"arena/runs/runner.py": {"datetime.now"}, "arena/cli/agents.py": {"datetime.now"}}


def wall_clocks_read(path: Path) -> set[str]:
    """The wall clocks that a module calls, or imports by their bare name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            found |= {ast.unparse(node), ast.unparse(node).split(".", 1)[-1]} & WALL_CLOCKS
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found |= {f"time.{alias.name}" for alias in node.names} & WALL_CLOCKS
    return found


@pytest.mark.slow
def test_no_module_reads_the_clock_on_the_wall() -> None:
    package = Path(arena.__file__).parent
    read = {str(path.relative_to(package.parent)): wall_clocks_read(path) for path in package.rglob("*.py")}
    assert {path: clocks for path, clocks in read.items() if clocks} == MAY_READ_IT


@pytest.mark.slow
def test_clock_stepped_under_the_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = iter(range(1, 10**6))
    monkeypatch.setattr(time, "time", lambda: float(next(steps)) * 86400 * (-1) ** next(steps))
    run = Faulty(tmp_path, RMS_NORM, in_python("pass"), attempts=3).run(FakeEvaluator())
    assert run.missing == 0 and all(0 < trial.seconds < 60 for trial in run.trials)


@pytest.mark.slow
def test_clock_stepped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under judge, template and worker: limits on time hold, a right kernel passes, latencies are those of always."""
    seen = tmp_path / "stepped"
    seen.mkdir()
    monkeypatch.setenv("PYTHONPATH", f"{STEPPING}:{Path(arena.__file__).parents[1]}")
    monkeypatch.setenv("ARENA_STEPPED", str(seen))
    hang = in_python("import time\ntime.sleep(3600)")
    with JudgeClient("cpu") as judge:
        run = Faulty(tmp_path, RMS_NORM, hang, {"call_timeout_s": 3.0}).run(judge)
        assert str(judge.pid) in {path.name for path in seen.iterdir()}
    check(run, Status.TIMEOUT, "within 3 s")
    for trial in run.trials:
        assert 0 < trial.seconds < 100
        assert trial.evaluation is not None
        for case in trial.evaluation.cases:
            assert case.timing is None or 0 < case.timing.candidate_ms.value < 10_000
