"""`--targets`: what reaches the judge, what the terminal shows, and what is refused before anything starts."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Literal

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from arena.cli import render
from arena.cli.app import app
from arena.errors import UsageError
from arena.results.portability import KernelUse
from arena.results.record import Evaluation
from arena.results.verdict import Status
from tests.fakes import FakeEvaluator
from tests.reports import builders as b

KERNELS = (KernelUse("small", 20, 0, 0, 10, 1.0), KernelUse("big", 128, 40960, 64, 90, 0.25))
BUILDS = (
    b.built("gfx942", *KERNELS),
    b.refused("sm_90", "x.cu:1: note\nx.cu(3): error: [bad] token\n"),
    b.unchecked("gfx950"),
)


class FakeJudge(FakeEvaluator):
    """A judge that answers at once with a fixed evaluation; those that were started are remembered."""

    started: ClassVar[list[FakeJudge]] = []
    status: ClassVar[Status] = Status.PASSED

    def __init__(self, platform: str, device: int | None = None) -> None:
        super().__init__(b.environment())
        self.started.append(self)

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        fixed = evaluation(self.status)
        return replace(fixed, task=found.task, task_type=found.task_type, task_hash=found.task_hash)

    def close(self) -> None:
        """Nothing was started."""

    def __enter__(self) -> FakeJudge:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        pass


class FakeBuilder:
    """A builder that refuses nothing."""

    def compile(self, *_: object) -> None:
        """Find nothing against a candidate."""

    def __enter__(self) -> FakeBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def asked(judge: type[FakeJudge]) -> list[tuple[str, ...]]:
    """The targets of every evaluation, in order."""
    return [options.targets for one in judge.started for options in one.options]


def evaluation(status: Status = Status.PASSED) -> Evaluation:
    found = b.trial(status=status, cases=[b.case()], targets=BUILDS, detail="expected ';'").evaluation
    assert found is not None
    return found


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> type[FakeJudge]:
    monkeypatch.setattr("arena.api.evaluation.JudgeClient", FakeJudge)
    monkeypatch.setattr("arena.runs.service.judge_pool.JudgeClient", FakeJudge)
    monkeypatch.setattr("arena.judge.compile.builder_client.BuilderClient", FakeBuilder)
    monkeypatch.setattr(FakeJudge, "started", [])
    return FakeJudge


def typed(*arguments: str) -> list[str]:
    return ["evaluate", "rms_norm", "tasks/triton2triton/normalization/rms_norm/kernel.py", *arguments]


def test_evaluate_passes_lists_and_repetitions_on(judge: type[FakeJudge]) -> None:
    shown = CliRunner().invoke(app, typed("--targets", "gfx942, sm_90", "--targets", "gfx950,gfx942"))
    assert shown.exit_code == 0, shown.output
    assert CliRunner().invoke(app, typed()).exit_code == 0
    assert asked(judge) == [("gfx942", "sm_90", "gfx950"), ()]


def test_evaluate_shows_the_builds_below_the_cases(judge: type[FakeJudge]) -> None:
    shown = CliRunner().invoke(app, typed("--targets", "gfx942,sm_90")).output
    assert shown.index("speedup") < shown.index("Builds for other GPUs") < shown.index("platform rocm")


def test_evaluate_shows_the_builds_although_the_native_one_failed(
    judge: type[FakeJudge], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "status", Status.COMPILE_ERROR)
    shown = CliRunner().invoke(app, typed("--targets", "gfx942"))
    assert shown.exit_code == 1
    assert "compile: compile_error: expected ';'" in shown.output
    assert "Builds for other GPUs" in shown.output


def test_evaluate_json_holds_the_builds(judge: type[FakeJudge]) -> None:
    shown = CliRunner().invoke(app, typed("--targets", "gfx942", "--json"))
    assert [build["outcome"] for build in msgspec.json.decode(shown.stdout)["targets"]] == [
        "built",
        "failed",
        "not_checked",
    ]


@pytest.mark.parametrize("command", [typed(), ["run", "configs/quickstart.yaml"]], ids=["evaluate", "run"])
def test_an_unknown_target_is_refused_before_a_judge_starts(judge: type[FakeJudge], command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--targets", "gfx94"])
    assert isinstance(done.exception, UsageError)
    assert "unknown target 'gfx94'" in str(done.exception)
    assert judge.started == []


@pytest.mark.parametrize(
    ("arguments", "expected"), [((), ("gfx90a", "gfx942")), (("--targets", "sm_90,sm_80"), ("sm_90", "sm_80"))]
)
def test_run_takes_targets_from_the_file_unless_the_command_line_names_some(
    judge: type[FakeJudge], tmp_path: Path, arguments: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    config = tmp_path / "ports.yaml"
    config.write_text(
        "tasks: [rms_norm]\nattempts: 1\nagents:\n  - {kind: noop}\nevaluation:\n  targets: [gfx90a, gfx942]\n",
        encoding="utf-8",
    )
    done = CliRunner().invoke(app, ["run", str(config), "--runs-dir", str(tmp_path), "--no-report", *arguments])
    assert done.exit_code == 0, done.output
    assert asked(judge) == [expected]


def printed(color_system: Literal["standard"] | None = None) -> str:
    page = io.StringIO()
    Console(file=page, width=150, force_terminal=color_system is not None, color_system=color_system).print(
        render.targets_table(evaluation())
    )
    return page.getvalue()


def test_the_table_shows_the_kernel_of_most_registers() -> None:
    lines = {line.strip("│").split("│")[0].strip(): line for line in printed().splitlines()}
    cells = [cell.strip() for cell in lines["gfx942"].strip("│").split("│")]
    assert cells == ["gfx942", "built", "1.2", "2", "128", "40 KiB", "64 B", "25 %", ""]
    assert "x.cu(3): error: [bad] token" in lines["sm_90"]
    assert "not checked" in lines["gfx950"]
    assert "no compiler for it here" in lines["gfx950"]


def test_the_outcomes_have_colours() -> None:
    for code, word in (("32", "built"), ("31", "failed"), ("2", "not checked"), ("31", "64 B")):
        assert f"\x1b[{code}m{word}" in printed("standard")
