"""The kernels of a run are judged again: chosen, drawn for, resumed, and compared with the record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from arena.agents.base import AgentSpec
from arena.cli.app import app
from arena.errors import UsageError
from arena.reports.reproduction import verification
from arena.results.record import Estimate, Evaluation, Split
from arena.results.release import Corpus
from arena.results.verdict import Status
from arena.results.verification import FILE, Verification
from arena.runs import records, runner
from arena.runs.identity import described
from arena.runs.rejudge import CHOICE, Asked, chosen, prepare
from arena.runs.service.judge_pool import JudgePool
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.release import CorpusRelease
from arena.task.options import Options
from tests.fakes import FakeEvaluator, planned
from tests.reports.builders import case, heldout, timing
from tests.runs.test_runner import SCALE, TWICE, config
from tests.task.corpus.folders import HELDOUT, TASK, write_task

ALL = Asked(private_cases=5)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    root = tmp_path / "tasks"
    write_task(root, SCALE)
    write_task(root, TWICE, task=TASK.replace("name: scale", "name: twice"))
    return root


@pytest.fixture
def recorded(tasks: Path, tmp_path: Path) -> records.RunRecords:
    plan = planned(config(AgentSpec("noop", "noop"), AgentSpec("top", "expert"), attempts=2), tasks)
    return runner.run(plan, tmp_path / "demo", JudgePool([FakeEvaluator()]))


def verified(
    recorded: records.RunRecords, tasks: Path, out: Path, evaluator: FakeEvaluator, asked: Asked = ALL
) -> Verification:
    choice, judges = chosen(recorded, asked, out), JudgePool([evaluator])
    rejudging = prepare(recorded, choice, open_corpora([tasks]), out, judges)
    return verification(recorded, runner.run(rejudging.plan, rejudging.folder, judges), rejudging)


def test_kernels_handed_in_are_judged_again_on_own_and_private_cases(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path
) -> None:
    evaluator = FakeEvaluator()
    found = verified(recorded, tasks, tmp_path / "out", evaluator)
    assert [(trial.agent, trial.task, trial.attempt) for trial in found.trials] == [
        ("noop", SCALE, 1), ("noop", TWICE, 1), ("noop", SCALE, 2), ("noop", TWICE, 2)
    ]  # fmt: skip
    assert found.complete and set(found.counts(task_changed=False)) == {"reproduced"}
    assert not found.counts(task_changed=True) and found.notes == ()
    own = yaml.safe_load(HELDOUT)
    for name, text, file in evaluator.seen:
        kernel = open_corpora([tasks]).find(name).baseline_kernel
        assert file is not None and kernel is not None and text == kernel.read_text()
        cases = yaml.safe_load(file.read_text())
        assert cases[: len(own)] == own and len(cases) == len(own) + 5
    again = records.read_run(tmp_path / "out" / "run")
    assert again.info.selected == again.info.planned and again.missing == 0


def test_the_private_draw_differs_each_time_and_is_kept_on_resume(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path
) -> None:
    first = verified(recorded, tasks, tmp_path / "a", FakeEvaluator())
    second = verified(recorded, tasks, tmp_path / "b", FakeEvaluator())
    assert first.draw_seed != second.draw_seed
    drawn = [(tmp_path / name / "heldout" / SCALE / "heldout.yaml").read_text() for name in "ab"]
    assert drawn[0] != drawn[1]
    evaluator = FakeEvaluator()
    assert verified(recorded, tasks, tmp_path / "a", evaluator).draw_seed == first.draw_seed and not evaluator.seen


def test_an_interrupted_verification_goes_on_where_it_stopped(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        verified(recorded, tasks, tmp_path / "out", FakeEvaluator(interrupt_after=1))
    evaluator = FakeEvaluator()
    assert len(verified(recorded, tasks, tmp_path / "out", evaluator).trials) == 4 and len(evaluator.seen) == 3


def test_trials_are_drawn_at_random_by_a_seed(recorded: records.RunRecords, tmp_path: Path) -> None:
    one = chosen(recorded, Asked(trials=2, seed=5), tmp_path / "a")
    assert one.trials == chosen(recorded, Asked(trials=2, seed=5), tmp_path / "b").trials and len(one.trials) == 2
    drawn = {chosen(recorded, Asked(trials=2), tmp_path / str(place)).selection_seed for place in range(5)}
    assert len(drawn) == 5
    assert {key[1] for key in chosen(recorded, Asked(tasks=("twice",)), tmp_path / "c").trials} == {TWICE}
    with pytest.raises(UsageError, match="no agent 'nobody'"):
        chosen(recorded, Asked(agents=("nobody",)), tmp_path / "d")
    with pytest.raises(UsageError, match="no trial with a kernel"):
        chosen(recorded, Asked(agents=("top",)), tmp_path / "e")


def test_a_folder_with_another_verification_is_refused(recorded: records.RunRecords, tmp_path: Path) -> None:
    chosen(recorded, ALL, tmp_path / "out")
    with pytest.raises(UsageError, match="--out"):
        chosen(recorded, Asked(trials=1), tmp_path / "out")
    next((recorded.path / "submissions").rglob("kernel.py")).write_text("# changed\n")
    with pytest.raises(UsageError, match="other trials or records"):
        chosen(recorded, ALL, tmp_path / "out")


def test_a_changed_task_is_judged_again_and_does_not_count(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path
) -> None:
    reference = tasks / SCALE / "reference.py"
    reference.write_text(reference.read_text() + "# changed\n")
    found = verified(recorded, tasks, tmp_path / "out", FakeEvaluator())
    assert {trial.task for trial in found.trials if trial.task_changed} == {SCALE}
    assert found.counts(task_changed=True) and found.counts(task_changed=False)


def test_a_kernel_that_was_exchanged_is_not_reproduced(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path
) -> None:
    next((recorded.path / "submissions" / "noop" / SCALE).rglob("kernel.py")).write_text("# WRONG\n")
    found = verified(recorded, tasks, tmp_path / "out", FakeEvaluator())
    names = {figure.name for trial in found.trials for figure in trial.figures if figure.outcome == "not reproduced"}
    assert {"kernel", "status", "correct"} <= names


class FailsBig(FakeEvaluator):
    """A judge whose baseline fails on every private case."""

    def check_baseline(self, task: Path, heldout: Path | None, options: object) -> dict[str, str]:
        return {}


def test_private_cases_that_the_baseline_fails_are_left_out(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path
) -> None:
    found = verified(recorded, tasks, tmp_path / "out", FailsBig())
    assert found.notes == (f"{SCALE}: 0 of 5 private cases", f"{TWICE}: 0 of 5 private cases")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `findings` below the test's folder."""
    monkeypatch.chdir(tmp_path)


def invoke(monkeypatch: pytest.MonkeyPatch, evaluator: FakeEvaluator, *typed: object) -> tuple[int, str]:
    from contextlib import nullcontext

    pool = JudgePool([evaluator])
    monkeypatch.setattr("arena.runs.service.judge_pool.started", lambda *args, **kwargs: nullcontext(pool))
    done = CliRunner().invoke(app, ["verify", *map(str, typed)])
    return done.exit_code, done.output


def test_the_command_writes_the_file_and_exits_by_what_was_found(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (recorded.path, "--platform", "cpu", "--tasks-dir", tasks, "--private-cases", "5")
    code, text = invoke(monkeypatch, FakeEvaluator(), *asked)
    assert code == 0 and "figures of 4 of 4 trials with a kernel" in text
    written = json.loads((tmp_path / "findings" / "demo" / FILE).read_text())
    assert written["draw_seed"] == json.loads((tmp_path / "findings" / "demo" / CHOICE).read_text())["draw_seed"]
    assert invoke(monkeypatch, FakeEvaluator(failing={"scale", "twice"}), *asked, "--out", tmp_path / "x")[0] == 3
    inside = CliRunner().invoke(app, ["verify", str(recorded.path), "--out", str(recorded.path / "in")])
    assert isinstance(inside.exception, UsageError)
    for kernel in (recorded.path / "submissions").rglob("kernel.py"):
        kernel.write_text("# WRONG\n")
    code, text = invoke(monkeypatch, FakeEvaluator(), *asked, "--out", tmp_path / "y")
    assert code == 1 and "not reproduced: noop" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dump", "/etc"),
        ("like", "M=4"),
        ("case", ["heldout-01"]),
        ("only", ["heldout-01"]),
        ("seeds", 10**12),
        ("seeds", 0),
        ("call_timeout_s", 1e12),
        ("host_memory_bytes", 2**60),
        ("effort", "correctness"),
        ("heldout", False),
        ("unknown", {"a": 1}),
    ],
)
def test_options_of_a_record_have_no_effect(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path, name: str, value: object
) -> None:
    """A record may come from anybody, who could have the judge write files, or judge fewer cases."""
    info = replace(recorded.info, evaluation={**recorded.info.evaluation, name: value})
    evaluator = FakeEvaluator()
    found = verified(replace(recorded, info=info), tasks, tmp_path / "out", evaluator)
    assert set(evaluator.options) == {Options()} and found.options == described(Options())


class Cases(FakeEvaluator):
    """A judge with two cases a split, of which a kernel that says `OVERFIT` fails every second held-out one."""

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        wrong = Status.WRONG_RESULT if "OVERFIT" in text else Status.PASSED
        cases = [case("seen-01"), case("seen-02"), heldout("heldout-01", 2.0), heldout("heldout-02", candidate=wrong)]
        return replace(found, cases=tuple(cases))


def test_a_forged_run_is_not_reproduced_and_its_figures_are_on_no_board(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = tmp_path / "kernels" / SCALE
    kernels.mkdir(parents=True)
    (kernels / "kernel.py").write_text("# OVERFIT\n")
    forger = AgentSpec("forger", "replay", folder=tmp_path / "kernels")
    made = runner.run(planned(config(forger), tasks), tmp_path / "demo", JudgePool([Cases()]))
    (honest,) = [trial for trial in made.trials if trial.evaluation is not None]
    assert honest.evaluation is not None
    lies = [
        replace(one, candidate=Status.PASSED, label=f"{one.label} forged", timing=timing(40.0))
        if one.split is Split.HELDOUT
        else replace(one, timing=replace(timing(40.0), speedup=Estimate(40.0, 0.5, 100.0)))
        for one in honest.evaluation.cases
    ]
    records.write_trial(made.path, replace(honest, evaluation=replace(honest.evaluation, cases=tuple(lies))))
    records.write_head(made.path, replace(made.info, evaluation={"case": ["seen-01"], "seeds": 0}))
    code, text = invoke(monkeypatch, Cases(), made.path, "--tasks-dir", tasks, "--private-cases", "0")
    assert code == 1
    for claim in ("case heldout-01", "case heldout-02", "outcome: recorded solved, here overfit", "its rounds give"):
        assert claim in text
    shown = CliRunner().invoke(app, ["site", str(made.path), "--findings", "findings", "--out", str(tmp_path / "site")])
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "site" / "index.html").read_text()
    assert "re-judged by us" not in page and "40.00" not in page and "claims not reproduced" in page


def test_options_of_the_command_line_are_the_verifiers(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = FakeEvaluator()
    asked = (recorded.path, "--tasks-dir", tasks, "--private-cases", "0")
    assert invoke(monkeypatch, evaluator, *asked, "--seeds", "5")[0] == 0
    assert {one.seeds for one in evaluator.options} == {5}
    refused = CliRunner().invoke(app, ["verify", str(recorded.path), "--seeds", "1000000000000"])
    assert isinstance(refused.exception, UsageError) and "--seeds" in str(refused.exception)


def test_what_a_run_says_of_its_tasks_is_compared_with_the_corpus(
    recorded: records.RunRecords, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = replace(recorded.info, latency_bound=(SCALE,), families={SCALE: "easy"})
    found = verified(replace(recorded, info=info), tasks, tmp_path / "out", FakeEvaluator())
    wrong = {figure.name for trial in found.trials for figure in trial.figures if figure.outcome == "not reproduced"}
    assert wrong == {"bound by latency", "family"}
    first = next(trial for trial in recorded.trials if trial.task == SCALE and trial.evaluation is not None)
    assert first.evaluation is not None
    lies = tuple(replace(one, gpu_share=80.0) if one.split is Split.SEEN else one for one in first.evaluation.cases)
    weighted = replace(first, evaluation=replace(first.evaluation, cases=lies))
    others = [trial for trial in recorded.trials if trial is not first]
    found = verified(replace(recorded, trials=(weighted, *others)), tasks, tmp_path / "weighted", FakeEvaluator())
    wrong = {figure.name for trial in found.trials for figure in trial.figures if figure.outcome == "not reproduced"}
    assert wrong == {f"traffic and regime of {one.case}" for one in lies if one.split is Split.SEEN}
    release = CorpusRelease(7, False, {SCALE: "a" * 64})
    monkeypatch.setattr("arena.reports.reproduction.last_release", lambda: release)
    trials = tuple(replace(trial, task_hash="b" * 64) for trial in recorded.trials)
    forged = replace(recorded, info=replace(recorded.info, corpus=Corpus(7, release.hash)), trials=trials)
    found = verified(forged, tasks, tmp_path / "again", FakeEvaluator())
    by_task = {trial.task: trial for trial in found.trials}
    assert not by_task[SCALE].task_changed and by_task[SCALE].not_reproduced and by_task[TWICE].task_changed
