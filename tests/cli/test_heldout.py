"""`arena heldout sample` writes what is proven, and says what is not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from typer.testing import CliRunner

from arena.cli.app import app
from arena.task.corpus.task_folder import load_task
from arena.task.options import CPU_MAX_WORK, Options
from tests.fakes import HERE
from tests.task.corpus.folders import write_task


@dataclass
class FakeJudge:
    """Proves every drawn case but those at the places in `failing`."""

    failing: dict[int, str]
    environment: Any = HERE
    limits: list[float | None] = field(default_factory=list)

    def __call__(self, platform: str) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def check_baseline(self, task: Path, heldout: Path, options: Options) -> dict[str, str]:
        self.limits.append(options.max_work)
        cases = load_task(task, heldout).heldout
        return {case.id: self.failing.get(number, "passed") for number, case in enumerate(cases, 1)}


@pytest.mark.parametrize(
    ("failing", "kept", "code"), [({}, 6, 0), ({2: "timeout: 60 s"}, 5, 1), (dict.fromkeys((1, 4), "crash"), 4, 1)]
)
def test_what_is_not_proven_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: dict[int, str], kept: int, code: int
) -> None:
    judge = FakeJudge(failing)
    monkeypatch.setattr("arena.judge.process.client.JudgeClient", judge)
    folder = write_task(tmp_path / "tasks")
    out = tmp_path / "private"
    typed = ["heldout", "sample", "--seed", "7", "--count", "6", "--tasks-dir", str(tmp_path / "tasks")]
    done = CliRunner().invoke(app, [*typed, "--out", str(out)])
    assert done.exit_code == code, done.output
    assert f"{kept} cases, all pass; {6 - kept} left out" in done.output
    file = next(out.rglob("heldout.yaml"), None)
    if kept >= 5:
        assert file is not None and len(yaml.safe_load(file.read_text())) == kept
        assert len(load_task(folder, file).heldout) == kept
    else:
        assert file is None and "no file" in done.output
    for why in failing.values():
        assert f"left out: {load_task(folder).id} M=" in done.output and why in done.output
    assert judge.limits == [CPU_MAX_WORK]
    (told,) = json.loads(CliRunner().invoke(app, [*typed, "--out", str(out), "--json"]).stdout)
    assert (told["task"], told["checked"], list(told["left_out"].values())) == (
        load_task(folder).id,
        kept,
        list(failing.values()),
    )
    assert told["file"] == (str(file) if file else None)


def test_a_domain_without_enough_cases_stops_no_other_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.judge.process.client.JudgeClient", FakeJudge({}))
    write_task(tmp_path / "tasks")
    typed = ["heldout", "sample", "--seed", "7", "--max-work", "1", "--tasks-dir", str(tmp_path / "tasks")]
    done = CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "private")])
    assert done.exit_code == 1 and "only 0 of 8 fresh cases found" in done.output
