"""What `arena run` shows while it works: at once what it does, then each trial with its number and the time left."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from arena.cli.progress import RunDisplay
from arena.package import PACKAGE
from arena.results.record import Trial
from arena.results.verdict import Status
from tests.fakes import HERE


def trial(attempt: int) -> Trial:
    return Trial(
        run="r",
        task="t/s/n",
        task_type="hip2hip",
        task_hash="h",
        agent="mine",
        attempt=attempt,
        status=Status.NOTHING_SUBMITTED,
        environment=HERE,
        started_at="now",
        seconds=2.0,
    )


@pytest.mark.parametrize(("step_s", "left"), [(4.0, "about 12 s left"), (100.0, "about 5 min left")])
def test_each_trial_has_its_number_and_the_time_left(monkeypatch: pytest.MonkeyPatch, step_s: float, left: str) -> None:
    now = [0.0]
    monkeypatch.setattr("arena.cli.progress.time.monotonic", lambda: now[0])
    text = io.StringIO()
    with RunDisplay(Console(file=text, width=60)) as display:
        display.planned(14, 10)
        for attempt in range(1, 5):
            now[0] += step_s
            display.finished(trial(attempt))
    _, first, *_, last = text.getvalue().splitlines()
    assert first.startswith("11/14 not handed in") and first.endswith(left)
    assert last.startswith("14/14 not handed in") and "left" not in last


@pytest.mark.slow
def test_a_run_says_at_once_what_it_does(tmp_path: Path) -> None:
    """Before any task is loaded or judge started; the pipe is read line by line, as it comes."""
    (tmp_path / "small.yaml").write_text(
        "tasks: [rms_norm]\nplatform: cpu\nattempts: 2\nagents: [{kind: noop}]\n"
        "evaluation: {max_work: 2.0e+5, timing_budget_s: 0.05, heldout: false}\n",
        encoding="utf-8",
    )
    line = [sys.executable, "-m", "arena", "run", "small.yaml", "--no-report", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    pipe = subprocess.PIPE
    began = time.monotonic()
    subprocess.run([*line[:3], "--version"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, check=True)
    control_s = time.monotonic() - began
    with subprocess.Popen(line, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None and process.stdout is not None
        began = time.monotonic()
        first = process.stderr.readline()
        took_s = time.monotonic() - began
        rest = process.stderr.read()
        (summary,) = json.loads(process.stdout.read())
    assert first == "small: loading the tasks\n"
    assert took_s < max(3, 5 * control_s), "a second on a machine that does nothing else"
    left, _, rest = rest.partition("\n")
    assert left == "left: 2 trials; no estimate: no trial of these agents is recorded"
    assert rest.startswith("2 trials (1 agents × 1 tasks × 2 attempts); starting a judge, platform cpu\n1/2 seen only")
    assert "s left\n2/2 seen only" in rest and process.returncode == 0
    assert {row["trials"] for row in summary["rows"]} == {2} and not (tmp_path / "reports").exists()
