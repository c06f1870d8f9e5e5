"""From a configuration to a report, for real: judges, hosts, compilers, records, pages."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.results.record import Evaluation, Split, Trial
from arena.results.verdict import Status
from arena.runs.records import RunRecords, read_run

ROOT = Path(__file__).parent.parent.parent
CANDIDATES = ROOT / "examples" / "candidates"
CONFIG = f"""
name: small
platform: cpu
tasks: [rms_norm, hip2hip/modules/softmax, torch2hip/modules/simple_matmul]
attempts: 1
agents:
  - {{kind: noop}}
  - {{kind: expert}}
  - {{name: hardcoded, kind: replay, folder: {CANDIDATES}/hardcoded}}
  - {{name: broken, kind: replay, folder: {CANDIDATES}/broken}}
evaluation: {{max_work: 2.0e+5, timing_budget_s: 0.1, call_timeout_s: 20}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and its report."""
    place = tmp_path_factory.mktemp("end-to-end")
    (place / "small.yaml").write_text(CONFIG, encoding="utf-8")
    done = CliRunner().invoke(app, _run(place))
    assert done.exit_code == 0, done.output
    return place


@pytest.fixture(scope="module")
def finished(place: Path) -> RunRecords:
    return read_run(place / "runs" / "small")


def _run(place: Path) -> list[str]:
    folders = ["--runs-dir", str(place / "runs"), "--reports-dir", str(place / "reports")]
    return ["run", str(place / "small.yaml"), *folders]


def trial(run: RunRecords, agent: str, task: str) -> Trial:
    return next(one for one in run.trials if one.agent == agent and one.task.endswith(task))


def evaluation(run: RunRecords, agent: str, task: str) -> Evaluation:
    found = trial(run, agent, task).evaluation
    assert found is not None
    return found


@pytest.mark.slow
def test_every_planned_trial_has_a_record(finished: RunRecords) -> None:
    assert finished.missing == 0
    assert len(finished.trials) == 12
    assert finished.info.environment.isolation


@pytest.mark.slow
def test_the_starting_kernel_is_as_fast_as_itself(finished: RunRecords) -> None:
    for task in ("rms_norm", "softmax"):
        ratios = [case.speedup.value for case in evaluation(finished, "noop", task).cases if case.speedup]
        assert ratios
        assert 0.5 < sorted(ratios)[len(ratios) // 2] < 2.0, "an emulation on a loaded machine; the GPU test is strict"


@pytest.mark.slow
def test_the_hard_coded_candidate_loses_on_cases_it_never_saw(finished: RunRecords) -> None:
    for task in ("rms_norm", "softmax", "simple_matmul"):
        judged = evaluation(finished, "hardcoded", task)
        assert all(case.candidate is Status.PASSED for case in judged.split(Split.SEEN))
        lost = [case for case in judged.split(Split.HELDOUT) if case.candidate is Status.WRONG_RESULT]
        assert lost and all(case.kind and case.baseline is Status.PASSED for case in lost)


@pytest.mark.slow
def test_the_broken_candidate_has_its_status(finished: RunRecords) -> None:
    found = {task: trial(finished, "broken", task).status for task in ("rms_norm", "softmax", "simple_matmul")}
    assert found == {
        "rms_norm": Status.WRONG_RESULT,
        "softmax": Status.WRONG_RESULT,
        "simple_matmul": Status.COMPILE_ERROR,
    }


@pytest.mark.slow
def test_torch2hip_has_nothing_for_noop_to_hand_in(finished: RunRecords) -> None:
    assert trial(finished, "noop", "simple_matmul").status is Status.NOTHING_SUBMITTED


@pytest.mark.slow
def test_a_finished_run_is_not_run_again(place: Path, finished: RunRecords) -> None:
    before = {path: path.stat().st_mtime_ns for path in (place / "runs").rglob("*.json")}
    done = CliRunner().invoke(app, _run(place))
    assert done.exit_code == 0
    assert "12 of 12 trials are recorded already" in done.output
    assert {path: path.stat().st_mtime_ns for path in (place / "runs").rglob("*.json")} == before


@pytest.mark.slow
def test_a_lost_record_alone_is_run_again(place: Path, finished: RunRecords) -> None:
    path = place / "runs" / "small" / "trials" / "broken" / "torch2hip.modules.simple_matmul.1.json"
    path.unlink()
    done = CliRunner().invoke(app, _run(place))
    assert done.exit_code == 0
    assert "11 of 12" in done.output
    assert path.is_file()


@pytest.mark.slow
def test_the_report_says_that_latencies_are_emulated(place: Path, finished: RunRecords) -> None:
    folder = place / "reports" / "small"
    for name in ("index.html", "summary.md"):
        assert "emulation" in (folder / name).read_text(encoding="utf-8")
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 12
    assert list((folder / "plots").glob("*.png"))


@pytest.mark.slow
def test_agents_can_be_compared(place: Path, finished: RunRecords) -> None:
    run = str(place / "runs" / "small")
    shown = CliRunner().invoke(app, ["compare", run, run, "--first-agent", "noop", "--second-agent", "expert"])
    assert shown.exit_code == 0, shown.output
    assert "noop" in shown.output and "expert" in shown.output


@pytest.mark.slow
def test_evaluate_exits_with_1_for_a_failure_and_speaks_json() -> None:
    broken = CANDIDATES / "broken/triton2triton/normalization/rms_norm/kernel.py"
    shown = CliRunner().invoke(
        app, ["evaluate", "rms_norm", str(broken), "--platform", "cpu", "--max-work", "2e4", "--json"]
    )
    assert shown.exit_code == 1
    judged = msgspec.json.decode(shown.stdout, type=Evaluation)
    assert judged.status is Status.WRONG_RESULT


@pytest.mark.slow
def test_evaluate_exits_with_1_where_only_held_out_cases_fail() -> None:
    kernel = CANDIDATES / "hardcoded" / "triton2triton" / "normalization" / "rms_norm" / "kernel.py"
    typed = ["evaluate", "rms_norm", str(kernel), "--platform", "cpu", "--max-work", "2e5", "--effort", "correctness"]
    assert CliRunner().invoke(app, [*typed, "--no-heldout"]).exit_code == 0
    done = CliRunner().invoke(app, [*typed, "--json"])
    judged = msgspec.json.decode(done.stdout, type=Evaluation)
    assert (done.exit_code, judged.status) == (1, Status.PASSED)


@pytest.mark.slow
def test_fresh_heldout_cases_are_proven_and_used(tmp_path: Path) -> None:
    private = tmp_path / "private"
    options = ["--seed", "7", "--count", "5", "--max-work", "5e4", "--platform", "cpu", "--out", str(private)]
    drawn = CliRunner().invoke(app, ["heldout", "sample", "--tasks", "rms_norm", *options])
    assert drawn.exit_code == 0, drawn.output
    assert "5 cases, all pass; 0 left out" in drawn.output
    (tmp_path / "fresh.yaml").write_text(
        "platform: cpu\ntasks: [rms_norm]\nattempts: 1\nagents: [{kind: noop}]\nheldout: private\n"
        "evaluation: {max_work: 5.0e+4, timing_budget_s: 0.05}\n",
        encoding="utf-8",
    )
    folders = ["--runs-dir", str(tmp_path / "runs"), "--reports-dir", str(tmp_path / "reports")]
    done = CliRunner().invoke(app, ["run", str(tmp_path / "fresh.yaml"), *folders])
    assert done.exit_code == 0, done.output
    (only,) = read_run(tmp_path / "runs" / "fresh").trials
    assert only.evaluation is not None
    assert len(only.evaluation.split(Split.HELDOUT)) == 5
    assert all(case.candidate is Status.PASSED for case in only.evaluation.cases)
