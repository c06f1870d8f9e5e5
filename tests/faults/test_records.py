"""The run folder: a disk that fills up, power that goes, and a second runner."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arena.agents.base import AgentSpec
from arena.errors import BrokenRecord, StorageError, UsageError
from arena.results.transcripts import transcript_path
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.service.judge_pool import JudgePool
from tests.fakes import FakeEvaluator, planned
from tests.faults.runs import Notes
from tests.task.corpus.folders import TASK, write_task

TASKS = ("triton2triton/suite/scale", "triton2triton/suite/twice", "triton2triton/suite/thrice")


def make_tasks(root: Path) -> Path:
    for name in TASKS:
        write_task(root, name, task=TASK.replace("name: scale", f"name: {name.rsplit('/', 1)[-1]}"))
    return root


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return make_tasks(tmp_path / "tasks")


def run(
    tasks: Path, folder: Path, notes: Notes | None = None, evaluator: FakeEvaluator | None = None
) -> records.RunRecords:
    config = RunConfig(name="demo", tasks=("*",), agents=(AgentSpec("noop", "noop"),), path="demo.yaml", attempts=2)
    return runner.run(planned(config, tasks), folder, JudgePool([evaluator or FakeEvaluator()]), notes or Notes())


def half_written(folder: Path) -> list[Path]:
    """Files that are neither a record nor anything else that belongs into a run folder."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name.startswith(".")]


@contextmanager
def files_of_at_most(num_bytes: int) -> Iterator[None]:
    """A disk with no room for a longer file: the kernel answers EFBIG where a full one answers ENOSPC."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_full_disk(tasks: Path, tmp_path: Path) -> None:
    """A trial that cannot be recorded ends the run, which says so, and goes on where it stopped once there is room."""
    folder, evaluator = tmp_path / "demo", FakeEvaluator()
    whole = run(tasks, tmp_path / "elsewhere")
    head, record = (folder.parent / "elsewhere" / records.HEAD).stat().st_size, 200
    assert head > record
    with files_of_at_most(record), pytest.raises(StorageError, match=r"run\.json: cannot be written .*make room"):
        run(tasks, folder, evaluator=evaluator)
    assert evaluator.seen == [] and half_written(folder) == []
    with files_of_at_most(head + 1), pytest.raises(StorageError, match="cannot be written"):
        run(tasks, folder, evaluator=evaluator)
    assert records.read_run(folder).trials == () and half_written(folder) == []
    assert len(evaluator.seen) == 1, "no trial is begun whose record could not be kept"
    assert [trial.key for trial in run(tasks, folder).trials] == [trial.key for trial in whole.trials]


def test_a_full_disk_under_a_transcript_ends_the_run(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it shows first: an error of the disk is no trial's result."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "workspace")

    monkeypatch.setattr("arena.runs.runner.scratch", full)
    with pytest.raises(StorageError, match="workspace: No space left on device; make room"):
        run(tasks, tmp_path / "demo")
    assert records.read_run(tmp_path / "demo").trials == ()


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99], ids=["empty", "half", "nearly whole"])
def test_power_loss_in_the_middle_of_a_record(tasks: Path, tmp_path: Path, kept: float) -> None:
    """The trial is run again, the broken file is put aside, and both are said."""
    folder = tmp_path / "demo"
    before = run(tasks, folder)
    path = records.trial_path(folder, "noop", TASKS[1], 1)
    data = path.read_bytes()
    broken = data[: int(len(data) * kept)]
    path.write_bytes(broken)
    (path.parent / f".{path.name}.a1b2c3").write_bytes(data)  # what a write leaves that was never finished
    with pytest.raises(BrokenRecord, match="puts it aside"):
        records.read_run(folder)
    notes, evaluator = Notes(), FakeEvaluator()
    after = run(tasks, folder, notes, evaluator)
    assert [name for name, _, _ in evaluator.seen] == ["twice"] and notes.plans == [(6, 5)]
    assert [trial.key for trial in after.trials] == [trial.key for trial in before.trials]
    aside = path.with_name(path.name + records.BROKEN)
    assert aside.read_bytes() == broken and half_written(folder) == []
    assert len(notes.said) == 1 and str(aside) in notes.said[0]


def test_power_loss_in_the_head_or_twice(tasks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    before = run(tasks, folder)
    for number in ("", "2"):
        (folder / records.HEAD).write_bytes(b"\0" * 512)
        evaluator = FakeEvaluator()
        assert run(tasks, folder, evaluator=evaluator).trials == before.trials
        assert evaluator.seen == [] and (folder / f"{records.HEAD}{records.BROKEN}{number}").is_file()


def test_power_loss_in_what_an_agent_handed_in(tasks: Path, tmp_path: Path) -> None:
    """It works again, rather than failing at every resume."""
    folder = tmp_path / "demo"
    run(tasks, folder)
    records.trial_path(folder, "noop", TASKS[0], 1).unlink()
    handed_in = transcript_path(folder, "noop", TASKS[0], 1) / runner.HANDED_IN
    handed_in.parent.mkdir(parents=True)
    handed_in.write_bytes(b'{"kernel": "kern')
    notes = Notes()
    assert {trial.status for trial in run(tasks, folder, notes).trials} == {Status.PASSED}
    assert len(notes.said) == 1 and "the agent works again" in notes.said[0]


HOLDER = "import sys, time; from pathlib import Path; from arena.runs import records\n" + (
    "with records.locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
)


def test_two_runners_on_one_folder(tasks: Path, tmp_path: Path) -> None:
    """The second is turned away by the first one's pid; the lock of a runner that was killed is free."""
    folder = tmp_path / "demo"
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None and first.stdout.readline() == b"held\n"
        evaluator = FakeEvaluator()
        with pytest.raises(UsageError, match=rf"is being written by process {first.pid};"):
            run(tasks, folder, evaluator=evaluator)
        assert evaluator.seen == [] and not (folder / records.HEAD).exists()
        first.kill()
    assert run(tasks, folder).missing == 0
    assert (folder / records.LOCK).read_text(encoding="ascii") == f"{os.getpid()}\n"


def scripted(tasks: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.agents.scripted_run", str(tasks), str(folder)])


@pytest.mark.slow
def test_two_runners_at_the_same_time(tmp_path: Path) -> None:
    """Started together, one runs everything and the other nothing."""
    tasks = make_tasks(tmp_path / "tasks")
    both = [scripted(tasks, tmp_path / "demo") for _ in range(2)]
    deadline = time.monotonic() + 100
    assert sorted(process.wait(deadline - time.monotonic()) for process in both) == [0, 1]
    assert records.read_run(tmp_path / "demo").missing == 0
