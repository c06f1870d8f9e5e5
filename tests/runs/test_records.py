"""Records: atomic, versioned, and never mixed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from arena.errors import RecordError, StorageError
from arena.results.effort import Effort
from arena.results.environment import DeviceFacts, Environment
from arena.results.record import (
    CaseResult,
    CaseTiming,
    Estimate,
    Evaluation,
    Mode,
    Round,
    RunInfo,
    Split,
    Trial,
)
from arena.results.verdict import Stage, Status, Verdict
from arena.runs import records

DEVICE = DeviceFacts(
    platform="cpu",
    vendor="cpu",
    arch="cpu",
    name="a processor",
    wave_size=32,
    memory_bytes=1 << 34,
    last_level_cache_bytes=0,
)
HERE = Environment(DEVICE, "session", {"torch": "2.8.0"})
TASKS = ("hip2hip/modules/silu", "triton2triton/norm/rms_norm")
INFO = RunInfo(
    run="demo",
    started_at="2025-01-01T00:00:00+00:00",
    environment=HERE,
    agents=("noop", "expert"),
    tasks=TASKS,
    attempts=2,
    config="configs/demo.yaml",
    arena_version="0.1.0",
    config_text="tasks: ['*']\n",
)


def evaluation() -> Evaluation:
    timing = CaseTiming(
        baseline_ms=Estimate(2.0, 1.9, 2.1),
        candidate_ms=Estimate(1.0, 0.9, 1.1),
        speedup=Estimate(2.0, 1.8, 2.2),
        mode=Mode.LOOP,
        calls_short=1,
        calls_long=2,
        cache="evicted",
        rounds=(Round(0.1, 0.2, 0.3, 0.4),),
        other_baselines_ms={"torch_compile": 0.7},
    )
    case = CaseResult(
        case="heldout-01",
        split=Split.HELDOUT,
        kind="edge",
        label="M=1 ümlaut",
        baseline=Status.PASSED,
        candidate=Status.PASSED,
        error_ratio=0.25,
        timing=timing,
    )
    return Evaluation(
        task=TASKS[0],
        task_type="hip2hip",
        task_hash="t",
        candidate_hash="c",
        environment=HERE,
        verdicts=(Verdict(Stage.COMPILE, Status.PASSED, "", 0.5),),
        cases=(case,),
        compile_log="warning: none\n",
        seconds={"compile": 0.5},
    )


def trial(agent: str = "noop", task: str = TASKS[0], attempt: int = 1) -> Trial:
    return Trial(
        run="demo",
        task=task,
        task_type=task.split("/")[0],
        task_hash="t",
        agent=agent,
        attempt=attempt,
        status=Status.PASSED,
        environment=HERE,
        started_at="2025-01-01T00:00:00+00:00",
        seconds=1.5,
        evaluation=replace(evaluation(), task=task, task_type=task.split("/")[0]),
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    records.write_head(tmp_path / "demo", INFO)
    return tmp_path / "demo"


def rewrite(path: Path, **changes: object) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **changes}), encoding="utf-8")


def test_what_is_written_is_read_back(run: Path) -> None:
    path = records.write_trial(run, trial())
    assert path == run / "trials" / "noop" / "hip2hip.modules.silu.1.json"
    assert records.read_trial(path) == trial()
    assert records.read_head(run) == INFO


def test_trials_come_in_the_planned_order(run: Path) -> None:
    for key in reversed(INFO.planned[:5]):
        records.write_trial(run, trial(*key))
    read = records.read_run(run)
    assert tuple(found.key for found in read.trials) == INFO.planned[:5]
    assert read.missing == 3


def test_nothing_but_the_record_is_left(run: Path) -> None:
    for _ in range(2):
        path = records.write_trial(run, trial())
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_write_that_fails_leaves_the_old_record(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = records.write_trial(run, trial())

    def no_space(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(StorageError, match=r"No space left on device.*make room"):
        records.write_trial(run, replace(trial(), seconds=9.0))
    assert records.read_trial(path).seconds == 1.5
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_truncated_record_is_an_error(run: Path, kept: float) -> None:
    path = records.write_trial(run, trial())
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(RecordError, match=r"unreadable record .*puts it aside and runs the trial again"):
        records.read_run(run)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema_version": 99}, "schema version 99, this arena reads 1"),
        ({"schema_version": None}, "schema version None"),
        ({"status": "crash"}, "trial says crash, its evaluation passed"),
        ({"status": "superb"}, "unreadable record"),
        ({"seconds": "long"}, "unreadable record"),
    ],
)
def test_a_record_that_cannot_be_is_an_error(run: Path, changes: dict[str, object], says: str) -> None:
    path = records.write_trial(run, trial())
    rewrite(path, **changes)
    with pytest.raises(RecordError, match=says):
        records.read_trial(path)


@pytest.mark.parametrize("text", ["[]", "3", "null", "\xff"])
def test_other_json_is_no_record(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(RecordError):
        records.read_trial(path)


@pytest.mark.parametrize(
    "stranger",
    [
        replace(trial(), run="another"),
        trial(agent="someone"),
        trial(task="hip2hip/modules/softmax"),
        trial(attempt=3),
    ],
    ids=["run", "agent", "task", "attempt"],
)
def test_a_record_that_nobody_planned_is_an_error(run: Path, stranger: Trial) -> None:
    records.write_trial(run, stranger)
    with pytest.raises(RecordError, match="does not belong to 'demo'"):
        records.read_run(run)


def test_records_of_two_machines_are_not_mixed(run: Path) -> None:
    there = Environment(replace(DEVICE, name="another processor"), "session")
    records.write_trial(run, replace(trial(), environment=there))
    with pytest.raises(RecordError, match="measured on another processor, the run on another device"):
        records.read_run(run)


def test_records_of_two_efforts_are_not_mixed(run: Path) -> None:
    records.write_trial(run, replace(trial(), evaluation=replace(evaluation(), effort=Effort.SCREEN)))
    with pytest.raises(RecordError, match="effort screen, but the run's is full"):
        records.read_run(run)
    records.write_head(run, replace(INFO, evaluation={"effort": "screen"}))
    assert len(records.read_run(run).trials) == 1


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(RecordError, match=r"not a run folder \(no run.json\)"):
            records.read_run(folder)
