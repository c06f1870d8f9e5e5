"""The judge is killed, the runner is, and the device goes away: what had no verdict is tried again, nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import arena
from arena.errors import InfrastructureError
from arena.judge.process.client import JudgeClient
from arena.judge.process.messages import Progress
from arena.results.verdict import Stage, Status
from arena.runs import records
from arena.runs.runner import TrialKey
from tests.faults.runs import RMS_NORM, Faulty, Notes, check, in_python, unharmed

UNPLUGGED = Path(__file__).parent / "unplugged"


def descendants(pid: int) -> set[int]:
    """Processes that descend from this one now."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text(encoding="ascii").split()):
            found |= {child, *descendants(child)}
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that run; a zombie does not."""
    states = {pid: Path(f"/proc/{pid}/stat") for pid in pids}
    return {
        pid for pid, stat in states.items() if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
    }


@pytest.mark.slow
def test_judge_killed(tmp_path: Path) -> None:
    """In the middle of an evaluation: a new judge gives the verdict, and nothing is left of the old one."""
    family: set[int] = set()
    with JudgeClient("cpu") as judge:

        def kill(trial: TrialKey, progress: Progress) -> None:
            if trial[0] == "faulty" and progress.stage == Stage.CORRECTNESS and not family:
                family.update(descendants(judge.pid))
                os.kill(judge.pid, signal.SIGKILL)

        faulty = Faulty(tmp_path, RMS_NORM, in_python("import time\ntime.sleep(0.2)"))
        run = faulty.run(judge, Notes(kill))
        check(run, Status.PASSED)
        assert len(family) >= 2, "a template and a worker at least"
        deadline = time.monotonic() + 60
        while alive(family) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert alive(family) == set()
        assert faulty.run(judge).trials == run.trials, "what has a verdict is not judged again"


@pytest.mark.slow
def test_a_candidate_that_kills_every_judge(tmp_path: Path) -> None:
    """It has failed: the baseline lives on where it did not."""
    killed: list[int] = []
    with JudgeClient("cpu") as judge:

        def kill(trial: TrialKey, progress: Progress) -> None:
            if trial[0] == "faulty" and progress.stage == Stage.CORRECTNESS and judge.pid not in killed:
                killed.append(judge.pid)
                os.kill(judge.pid, signal.SIGKILL)

        faulty = Faulty(tmp_path, RMS_NORM, in_python("import time\ntime.sleep(0.2)"))
        check(faulty.run(judge, Notes(kill)), Status.CRASH, "failed twice")
    assert len(killed) == 2


@pytest.mark.slow
def test_a_device_that_disappears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was being judged has no verdict, the run ends soon and says why, and goes on when the device is back."""
    monkeypatch.setenv("PYTHONPATH", f"{UNPLUGGED}:{Path(arena.__file__).parents[1]}")
    monkeypatch.setenv("ARENA_UNPLUGGED", str(tmp_path))
    gone = tmp_path / "gone"

    def unplug(trial: TrialKey, progress: Progress) -> None:
        if trial == ("noop", RMS_NORM, 1) and progress.stage == Stage.CORRECTNESS:
            gone.touch()

    faulty = Faulty(tmp_path, RMS_NORM, in_python("pass"), attempts=3)
    with JudgeClient("cpu") as judge, pytest.raises(InfrastructureError):
        faulty.run(judge, Notes(unplug))
    before = records.read_run(faulty.folder)
    assert unharmed(before.trials[0]) and before.missing > 0
    lost = before.trials[1:]
    assert lost and {trial.status for trial in lost} == {Status.HARNESS_ERROR}
    assert "returned error 100" in lost[0].detail and all(trial.evaluation is None for trial in lost)
    gone.unlink()
    with JudgeClient("cpu") as judge:
        after = faulty.run(judge)
    assert after.missing == 0 and after.trials[0] == before.trials[0]
    assert all(unharmed(trial) for trial in after.trials)


@pytest.mark.slow
@pytest.mark.gpu
def test_a_gpu_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that is hidden stands for one that is gone: the judge does not start, and says so."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "-1")
    with JudgeClient("cuda") as judge, pytest.raises(InfrastructureError, match="no cuda device here"):
        _ = judge.environment
