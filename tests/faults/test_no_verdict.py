"""A candidate that ends its judge has failed, whoever asked: `arena evaluate`, `arena run` and `arena serve`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import arena
from arena.cli.app import app
from arena.judge.compile.builder_client import BuilderClient
from arena.judge.process.client import JudgeClient
from arena.results.messages import for_terminal, message
from arena.results.session import Limits
from arena.results.verdict import Status
from arena.runs.serve.episodes import ServeSettings, opened
from arena.runs.service.judge_pool import JudgePool
from arena.task.corpus.corpora import open_corpora
from arena.task.options import Options
from tests.faults.runs import RMS_NORM, Faulty, check, in_python, start
from tests.runs.serve.serving import me

FRAGILE = Path(__file__).parent / "fragile"
QUICK = Options(seeds=1, max_work=2e4, timing_budget_s=0.02, call_timeout_s=20.0)
FILL = """\
try:
    with open("filler", "ab") as file:
        while file.write(b"x" * (1 << 16)):
            file.flush()
except OSError:
    pass"""
HOSTILE = in_python("pass  # ENDS ITS JUDGE")


@pytest.fixture(autouse=True)
def fragile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{FRAGILE}:{Path(arena.__file__).parents[1]}")


@pytest.fixture
def judge(fragile: None) -> Iterator[JudgeClient]:
    with JudgeClient("cpu") as judge:
        yield judge


@pytest.mark.slow
def test_a_run_records_it_and_goes_on(tmp_path: Path, judge: JudgeClient) -> None:
    trial = check(Faulty(tmp_path, RMS_NORM, HOSTILE).run(judge), Status.CRASH, message("judge_failed_twice"))
    assert trial.evaluation is not None and not trial.evaluation.verdicts[0].passed


@pytest.mark.slow
def test_an_episode_counts_it(tmp_path: Path, judge: JudgeClient) -> None:
    """Nor is a builder that dies of it a way to another try."""
    corpora = open_corpora()
    settings = ServeSettings(tmp_path / "run", corpora, (RMS_NORM,), QUICK, Limits(evaluations=3), 4)
    with BuilderClient() as builder, opened(settings, JudgePool([judge], builder)) as episodes:
        one = episodes.begin(me(episodes), RMS_NORM, "client", None, None).episode
        step = episodes.evaluate(me(episodes), one, HOSTILE.encode(), False)
        assert (step.reward, step.evaluation, step.left) == (-3.0, 1, 2) and message("judge_failed_twice") in step.text
        final = episodes.finish(me(episodes), one, HOSTILE.encode())
        assert (final.stage_status, final.reward, final.done) == (Status.CRASH, -3.0, True)
        another = episodes.begin(me(episodes), RMS_NORM, "client", None, None).episode
        assert episodes.evaluate(me(episodes), another, start(RMS_NORM).encode(), False).left == 2


@pytest.mark.slow
def test_evaluate_says_so_and_exits_as_for_any_failed_candidate(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(HOSTILE, encoding="utf-8")
    quick = ["--platform", "cpu", "--max-work", "2e4", "--seeds", "1", "--no-heldout"]
    done = CliRunner().invoke(app, ["evaluate", RMS_NORM, str(file), *quick])
    assert done.exit_code == 1, done.output
    told = for_terminal(message("judge_failed_twice"))
    assert f"compile: crash: {told}" in " ".join(done.output.split())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MiB, for temporary files."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.slow
def test_a_candidate_that_fills_the_disk(tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is right, and leaves the judge no room to begin the held-out cases with."""
    monkeypatch.setenv("TMPDIR", str(small_disk))
    with JudgeClient("cpu") as judge:
        faulty = Faulty(tmp_path, RMS_NORM, in_python(FILL), {"heldout": True})
        check(faulty.run(judge), Status.CRASH, message("judge_failed_twice"))
