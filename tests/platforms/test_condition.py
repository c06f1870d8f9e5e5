"""The condition of GPUs as the tools tell it: programs on the path that stand in for them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import arena
from arena.checks.doctor import timing
from arena.checks.doctor.inventory import of_warnings
from arena.cli import evaluate
from arena.cli.app import app
from arena.cli.devices import warn_before
from arena.platforms import smi
from arena.platforms.condition import condition, other_processes, warnings_before
from arena.platforms.cuda.nvidia_smi import parse_processes
from arena.results.effort import Effort
from arena.task.corpus.corpora import open_corpora
from arena.task.options import options_of
from tests.platforms.amd_outputs import LIMIT_NESTED, MI300X, ROCM_SMI, new, old, user

IDLE = "345, 1980, 40, 0, 0x0000000000000001"
SHARED = "2 other processes use this GPU: timings are not to be trusted; wait, or choose another with --devices"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs, alone on the path with the system's; no GPU is hidden."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def program(folder: Path, name: str, body: str) -> None:
    """Write a shell script that notes its arguments in `asked`."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{body}\n', encoding="utf-8")
    path.chmod(0o755)


def nvidia(folder: Path, *pids: int, condition: str = IDLE) -> None:
    lines = "\\n".join(map(str, pids))
    program(folder, "nvidia-smi", f"case \"$1\" in *apps*) printf '{lines}\\n';; *) echo '{condition}';; esac")


def amd(folder: Path, metric: str, static: str, process: str) -> None:
    answers = {"metric": metric, "static": static, "process": process}
    for name, text in answers.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    program(folder, "amd-smi", f'cat "{folder}/$1.json"')


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text(encoding="utf-8").splitlines()


def test_without_a_tool_nothing_is_known(tools: Path) -> None:
    assert condition() is None and other_processes() is None and warnings_before("auto") == []


def test_other_processes_are_counted_and_ours_are_not(tools: Path) -> None:
    nvidia(tools, os.getpid(), 4194301, 4194302)
    assert other_processes("cuda") == 2
    assert warnings_before("auto", (None,), "--devices") == [SHARED]
    nvidia(tools, 4194301)
    (text,) = warnings_before("cuda")
    assert text.startswith("1 other process uses this GPU") and text.endswith("with CUDA_VISIBLE_DEVICES")
    nvidia(tools, os.getpid())
    assert warnings_before("cuda") == [], "and the low clock of an idle device is none"
    nvidia(tools)
    assert other_processes("cuda") == 0


def test_a_hot_device_is_named_before_it_is_measured(tools: Path) -> None:
    nvidia(tools, condition="1980, 1980, 90, 0, 0x0")
    assert warnings_before("cuda", (0, 1)) == [f"GPU {place}: the device is at 90 °C: let it cool" for place in (0, 1)]


def test_the_gpu_that_is_visible_is_asked_for(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia(tools)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-0a1b")
    condition("cuda")
    other_processes("cuda", 1)
    assert [line.split("--id=")[1] for line in asked(tools)] == ["5", "GPU-0a1b"]
    assert condition("cuda", 2) is None and other_processes("cuda", 2) is None and len(asked(tools)) == 2


def test_the_amd_gpu_that_is_visible_is_asked_for(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    third = {**MI300X, "gpu": 3}
    amd(tools, new(third), new({**LIMIT_NESTED, "gpu": 3}), old({"gpu": 3, "process_list": [user(4194301, 1e9)]}))
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    low, shared = warnings_before("rocm")
    assert low == "the power cap is 500 of 750 W: raise it"
    assert shared.startswith("1 other process uses") and shared.endswith("HIP_VISIBLE_DEVICES")
    assert asked(tools) == [
        "metric --gpu 3 --json",
        "static --gpu 3 --limit --json",
        "process --gpu 3 --json",
    ]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "GPU-3f00")
    assert condition("rocm") is None and len(asked(tools)) == 3, "amd-smi knows a GPU by another UUID than HIP"


def test_rocm_smi_is_asked_where_amd_smi_fails(tools: Path) -> None:
    program(tools, "amd-smi", "echo 'unable to load libamd_smi.so'; exit 1")
    assert condition("rocm") is None
    (tools / "rocm.json").write_text(ROCM_SMI, encoding="utf-8")
    program(tools, "rocm-smi", f"cat {tools}/rocm.json")
    seen = condition("auto")
    assert seen is not None and seen.temperature_c == 45 and other_processes("rocm") is None


def test_what_is_no_list_of_pids() -> None:
    assert parse_processes("12\n 13 \n\n") == frozenset({12, 13}) and parse_processes("") == frozenset()
    for text in ("No devices were found", "[Insufficient Permissions]", "12, python"):
        assert parse_processes(text) is None


def test_a_tool_that_hangs_costs_its_limit_and_no_more(tools: Path) -> None:
    program(tools, "nvidia-smi", "sleep 600")
    began = time.monotonic()
    assert smi.ask("nvidia-smi", timeout_s=0.5) is None
    assert 0.4 < time.monotonic() - began < 60


def test_gpus_are_asked_side_by_side(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No first question is answered before that of all eight GPUs is asked."""
    together = f"touch {tools}/at-$$; while [ $(ls {tools} | grep -c at-) -lt 8 ]; do sleep 0.05; done"
    program(tools, "nvidia-smi", f"{together}; case \"$1\" in *apps*) echo 4194301;; *) echo '{IDLE}';; esac")
    monkeypatch.setattr(smi.ask, "__kwdefaults__", {"timeout_s": 30.0})
    assert len(warnings_before("cuda", tuple(range(8)))) == 8


def test_no_judge_and_no_worker_asks() -> None:
    """A question takes as long as a tool takes to start, so it has no place beside a clock."""
    package = Path(arena.__file__).parent
    for path in (*package.glob("judge/**/*.py"), *package.glob("worker/*.py"), *package.glob("runs/service/*.py")):
        text = path.read_text(encoding="utf-8")
        assert "platforms.condition" not in text and "_smi" not in text, path


def test_the_cpu_platform_asks_nobody(tools: Path) -> None:
    nvidia(tools, 4194301, 4194302)
    assert warnings_before("cpu") == [] and not (tools / "asked").exists()


def test_the_line_that_commands_print(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nvidia(tools, 4194301, 4194302)
    warn_before("cuda", (None,), "--devices")
    assert capsys.readouterr().err == f"warning: {SHARED}\n"


def test_the_row_of_the_doctor() -> None:
    good, bad = of_warnings([]), of_warnings([SHARED])
    assert good.present and good.found == "no warning"
    assert not bad.present and not bad.needed and bad.cost == SHARED


class _NoJudge(Exception):
    """Raised in place of starting a judge."""


def _no_judge(*_: object, **__: object) -> None:
    raise _NoJudge


def test_evaluate_warns_before_its_judge_starts(
    tools: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nvidia(tools, 4194301, 4194302)
    monkeypatch.setattr("arena.api.evaluation.JudgeClient", _no_judge)
    task = open_corpora(()).find("rms_norm")
    assert task.baseline_kernel is not None
    for effort, told in ((Effort.SCREEN, True), (Effort.CORRECTNESS, False)):
        with pytest.raises(_NoJudge):
            evaluate._evaluated(task, task.baseline_kernel, "cuda", options_of({"effort": effort}))
        assert ("2 other processes use this GPU" in capsys.readouterr().err) is told


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_a_run_warns_before_its_judges_start(
    tools: Path, monkeypatch: pytest.MonkeyPatch, executor: str, tmp_path: Path
) -> None:
    nvidia(tools, 4194301, 4194302)
    monkeypatch.setattr("arena.runs.executors.base.started", _no_judge)
    arguments = ["run", "quickstart", "--platform", "cuda", "--tasks", "*/rms_norm", "--devices", "1,0"]
    shown = CliRunner().invoke(app, [*arguments, "--executor", executor, "--runs-dir", str(tmp_path / "runs")])
    assert isinstance(shown.exception, _NoJudge), shown.output
    lines = [f"warning: GPU {place}: {SHARED}" in shown.output for place in (1, 0)]
    assert lines == [executor == "local"] * 2, "the GPUs of a cluster are elsewhere"


def test_the_timing_check_asks_before_its_judge_starts(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia(tools)
    monkeypatch.setattr(timing, "JudgeClient", _no_judge)
    with pytest.raises(_NoJudge):
        timing.check_timing("cuda")
    assert [line.split("=")[0] for line in asked(tools)] == ["--query-gpu", "--query-compute-apps"]
