"""Runs on several platforms: each task on one device, each device in a report of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from arena.agents.base import AgentSpec
from arena.cli.report import write_and_show
from arena.errors import FileError, RecordError, UsageError
from arena.reports.rows import trial_rows
from arena.results.session import Limits
from arena.runs import records, runner
from arena.runs.config import Overrides, RunConfig, load_config, override
from arena.runs.service.judge_pool import JudgePool
from arena.runs.submission import read_submission
from tests.fakes import DEVICE, HERE, FakeEvaluator, Timing, planned
from tests.task.corpus.folders import TASK, write_task

SCALE, TWICE, HALF = (f"triton2triton/suite/{name}" for name in ("scale", "twice", "half"))
SPEEDS = {"...": 2.0}
H200 = replace(HERE, device=replace(DEVICE, platform="cuda", vendor="nvidia", arch="sm_90", name="H200"))
MI300X = replace(HERE, device=replace(DEVICE, platform="rocm", vendor="amd", arch="gfx942", name="MI300X"))
BOTH = (("*/suite/half", "rocm"), ("scale", "rocm"), ("*", "cuda"))


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    for name in (SCALE, TWICE, HALF):
        write_task(tmp_path / "tasks", name, task=TASK.replace("name: scale", f"name: {name.rsplit('/', 1)[1]}"))
    return tmp_path / "tasks"


def plan(tasks: Path, platforms: tuple[tuple[str, str], ...] = BOTH, attempts: int = 2) -> runner.RunPlan:
    config = RunConfig(
        name="demo",
        tasks=("*",),
        agents=(AgentSpec("noop", "noop"),),
        platforms=platforms,
        attempts=attempts,
        path="demo.yaml",
    )
    return planned(config, tasks)


def pools() -> dict[str, JudgePool]:
    return {"cuda": JudgePool([Timing(H200, speeds=SPEEDS)]), "rocm": JudgePool([Timing(MI300X, speeds=SPEEDS)])}


def test_each_task_is_measured_on_its_platform(tasks: Path, tmp_path: Path) -> None:
    run = runner.run(plan(tasks), tmp_path / "demo", pools())
    names = {trial.task: trial.environment.device.name for trial in run.trials}
    assert names == {SCALE: "MI300X", HALF: "MI300X", TWICE: "H200"} and len(run.trials) == 6
    assert [(one.environment.device.name, set(one.tasks)) for one in run.info.devices] == [
        ("MI300X", {SCALE, HALF}),
        ("H200", {TWICE}),
    ]
    assert runner.finished(plan(tasks), tmp_path / "demo") == run


def test_a_run_on_several_devices_is_resumed_on_the_same_ones(tasks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    whole = runner.run(plan(tasks), folder, pools())
    lost = records.trial_path(folder, "noop", TWICE, 2)
    lost.unlink()
    assert len(runner.run(plan(tasks), folder, pools()).trials) == len(whole.trials)
    swapped = dict(zip(("rocm", "cuda"), pools().values(), strict=True))
    lost.unlink()
    with pytest.raises(UsageError, match="was begun on MI300X"):
        runner.run(plan(tasks), folder, swapped)
    with pytest.raises(UsageError, match="was begun on MI300X"):  # another mapping
        runner.run(plan(tasks, (("half", "rocm"), ("*", "cuda"))), folder, pools())


def test_a_record_of_another_device_than_its_task_s_is_refused(tasks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    run = runner.run(plan(tasks), folder, pools())
    scale = next(trial for trial in run.trials if trial.task == SCALE)
    records.write_trial(folder, replace(scale, environment=H200))
    with pytest.raises(RecordError, match="measured on H200"):
        records.read_run(folder)


def test_platforms_that_turn_out_to_be_one_device_are_one(tasks: Path, tmp_path: Path) -> None:
    found = {"auto": JudgePool([FakeEvaluator(H200)]), "cuda": JudgePool([FakeEvaluator(H200)])}
    run = runner.run(plan(tasks, (("half", "auto"), ("*", "cuda"))), tmp_path / "demo", found)
    assert run.info.devices == () and records.by_device(run) == (run,)


def test_devices_are_never_averaged(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runner.run(plan(tasks), tmp_path / "demo", pools())
    with pytest.raises(RecordError, match="2 devices, which are never averaged"):
        trial_rows([run])
    with pytest.raises(RecordError, match="several devices is not taken"):
        read_submission(tmp_path / "demo")
    amd, nvidia = records.by_device(run)
    assert [(len(part.trials), len(part.info.planned), part.missing) for part in (amd, nvidia)] == [
        (4, 4, 0),
        (2, 2, 0),
    ]
    write_and_show([run], tmp_path / "report")
    assert "rocm-gfx942/index.html" in capsys.readouterr().out.replace("\n", "")
    for folder, device, other in (("rocm-gfx942", "MI300X", "H200"), ("cuda-sm_90", "H200", "MI300X")):
        summary = (tmp_path / "report" / folder / "summary.md").read_text(encoding="utf-8")
        assert device in summary and other not in summary


def test_a_mapping_in_a_configuration(tasks: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = "tasks: ['*']\ncorpora: [tasks]\nagents: [{kind: noop}]\n"
    file.write_text(text + "platform: {half: rocm, '*': cuda}\n", encoding="utf-8")
    config = load_config(file)
    assert config.platforms == (("half", "rocm"), ("*", "cuda"))
    assert runner.plan_run(config).tasks_of() == {"rocm": (HALF,), "cuda": (SCALE, TWICE)}
    one = override(config, Overrides(platform="cpu"))
    assert set(runner.plan_run(one).tasks_of()) == {"cpu"}
    file.write_text(text + "platform: {half: rocm}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="`platform` names none for triton2triton/suite/scale"):
        runner.plan_run(load_config(file))
    file.write_text(text + "platform: {half: metal}\n", encoding="utf-8")
    with pytest.raises(FileError, match="'metal' is not one of"):
        load_config(file)


def test_a_gpu_has_more_trials_than_it_can_measure(tasks: Path) -> None:
    two_gpus = {"cuda": JudgePool([FakeEvaluator(H200), FakeEvaluator(H200)])}
    assert runner.side_by_side(plan(tasks), two_gpus) == 6
    assert runner.side_by_side(plan(tasks), {"cpu": JudgePool([FakeEvaluator(HERE)])}) == 1
    with_session = replace(plan(tasks), agents={"one": SimpleNamespace(limits=Limits())})
    assert runner.side_by_side(with_session, two_gpus) == 2
