"""Targets in what a report writes: the page, the summary, CSV and JSON; and nothing of it where none was asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from arena.reports.formats import quantity
from arena.reports.measure import Unit
from arena.reports.pages import Report, write_report
from arena.reports.rows import trial_rows
from arena.reports.target_tables import COLUMNS, targets_frame
from arena.reports.views import page_name
from arena.results.portability import KernelUse, MachineCode, MachineCodeOutcome
from arena.results.verdict import Status
from arena.runs.records import RunRecords

from . import builders as b
from .test_pages import Page

LOG = "In file included from task.h:3\nkernel.hip:4:1: error: unknown type name '__half|2'\n1 error generated.\n"
TASKS = ("hip2hip/m/gelu", "hip2hip/m/silu", "triton2triton/n/rms")


def ported() -> RunRecords:
    """Two agents on the CPU platform: builds everywhere, nowhere but there, for one vendor, and nothing at all."""
    env = b.environment(b.CPU)
    two = (KernelUse("scale<float, 4>", 64, 16384, 128, 40, 0.5), KernelUse("tail", 22))
    trials = [
        b.trial(TASKS[0], targets=(b.built("gfx942", *two), b.built("sm_90"), b.unchecked("gfx950")), env=env),
        b.trial(TASKS[1], targets=(b.refused("gfx942", LOG), b.refused("sm_90"), b.unchecked("gfx950")), env=env),
        b.trial(TASKS[2], Status.WAVE_SIZE_DEPENDENT, detail="wrong at 64 lanes", targets=(b.built("sm_90"),), env=env),
        b.trial(
            TASKS[0], targets=(b.built("gfx942"), b.refused("sm_90"), b.unchecked("gfx950")), agent="beta", env=env
        ),
    ]
    return b.run(trials, tasks=TASKS)


def task_text(report: Report, task: str) -> str:
    return (report.index.parent / "tasks" / page_name(task)).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_report([ported()], tmp_path_factory.mktemp("targets"))


def test_the_page_has_the_section_and_the_column(report: Report) -> None:
    text = report.index.read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert page.bare_tables == 0
    assert {"#targets", "targets.csv"} <= set(page.loads)
    assert text.count(">Builds for</th>") == 1, "the list"
    assert task_text(report, TASKS[0]).count(">Builds for</th>") == 1
    for words in ("Builds only where it was written", "Right at one wave size only", "wrong at 64 lanes"):
        assert words in page.text
    assert "1 not checked" in page.text
    assert "a planned trial without an evaluation" in page.text


def test_what_builds_only_where_it_was_written_stands_out(report: Report) -> None:
    text = report.index.read_text(encoding="utf-8")
    for word in ("cpu only", "amd only"):
        assert f'<strong class="bad">{word}</strong>' in text
    assert "<strong>cpu only</strong>" in task_text(report, TASKS[1])
    assert "<strong>everywhere" not in task_text(report, TASKS[0])
    assert "kernel.hip:4:1: error: unknown type name &#39;__half|2&#39;" in text
    assert "1 error generated" not in text


def test_resource_use_is_expanded_per_task(report: Report) -> None:
    page = Page(task_text(report, TASKS[0]))
    assert "Resource use of 4 compiled kernels of hip2hip/m/gelu" in page.text
    assert "Resource use of 1 compiled kernel of triton2triton/n/rms" in Page(task_text(report, TASKS[2])).text
    assert "alpha gfx942 scale<float, 4> 64 40 16 KiB 128 B 50 %" in page.text
    assert "alpha gfx942 tail 22 0 0 B 0 B –" in page.text


def test_the_measure_is_on_the_page_with_its_interval(report: Report) -> None:
    page = Page(report.index.read_text(encoding="utf-8"))
    alpha = report.groups[0].mean["portability"]
    assert alpha is not None
    assert alpha.value == pytest.approx(2 / 3)
    assert quantity(alpha, Unit.SHARE) in page.text


def test_the_summary_has_the_table_and_the_list(report: Report) -> None:
    summary = (report.index.parent / "summary.md").read_text(encoding="utf-8")
    section = summary[summary.index("## Targets") :]
    assert "| Agent | gfx942 | sm_90 | gfx950 | Everywhere |" in section
    assert "| alpha | 1/2 | 2/3 | – (2 not checked) | 66.7 %" in section
    assert "- **cpu only**: alpha, hip2hip/m/silu: builds for cpu (ran there), fails for gfx942, sm_90: " in section
    assert "- **amd only**: beta, hip2hip/m/gelu: builds for gfx942, fails for sm_90: " in section
    assert "- alpha, triton2triton/n/rms: wrong at 64 lanes" in section


def test_csv_has_a_row_per_kernel_and_one_for_a_failure(report: Report) -> None:
    frame = pd.read_csv(report.index.parent / "targets.csv")
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == 4 + 3 + 1 + 3
    scale = frame[frame.kernel == "scale<float, 4>"].iloc[0]
    assert (scale.registers, scale.shared_bytes, scale.spill_bytes, scale.occupancy) == (64, 16384, 128, 0.5)
    assert (scale.outcome, scale.vendor, scale.builds, scale.asked) == ("built", "amd", 2, 2)
    failed = frame[(frame.task == TASKS[1]) & (frame.target == "gfx942")]
    assert len(failed) == 1
    assert pd.isna(failed.iloc[0].kernel)
    assert failed.iloc[0].detail == LOG
    text = (report.index.parent / "targets.csv").read_text(encoding="utf-8")
    assert ",64,40,16384,128,0.5," in text, "registers are whole numbers although some are unknown"
    assert frame[frame.vendor == "nvidia"].scalar_registers.isna().all()


def test_json_has_the_targets_of_every_trial(report: Report) -> None:
    document = json.loads((report.index.parent / "report.json").read_text(encoding="utf-8"))
    trials = {(trial["agent"], trial["task"]): trial for trial in document["trials"]}
    first, second, absent = trials["alpha", TASKS[0]], trials["alpha", TASKS[1]], trials["beta", TASKS[1]]
    assert (first["portability"], second["portability"]) == ("everywhere", "cpu only")
    assert second["targets"][0] == {
        "name": "gfx942",
        "outcome": "failed",
        "detail": LOG,
        "seconds": 0.5,
        "builds": 0,
        "asked": 2,
        "machine_code": "",
        "machine_code_detail": "",
    }
    assert (absent["portability"], absent["targets"]) == (None, [])


def test_machine_code_stands_beside_the_builds(tmp_path: Path) -> None:
    """Executed for one target: counts on the page and in the summary, the reason in CSV and JSON, loud where wrong."""
    right = MachineCode(MachineCodeOutcome.RIGHT, "0.01 of the tolerance", "N=4", 0.2)
    wrong = MachineCode(MachineCodeOutcome.WRONG, "3 of 4 elements wrong", "N=4", 0.2)
    trials = [
        b.trial(TASKS[0], targets=(replace(b.built("gfx942"), machine_code=right), b.built("sm_90"))),
        b.trial(TASKS[1], targets=(replace(b.built("gfx942"), machine_code=wrong), b.built("sm_90"))),
    ]
    run = b.run(trials, tasks=TASKS[:2])
    written = write_report([run], tmp_path)
    for text in (written.index.read_text(encoding="utf-8"), (tmp_path / "summary.md").read_text(encoding="utf-8")):
        assert "machine code: 1 right, 1 wrong" in text
        assert "executed on the CPU" in text
    assert "machine code wrong for gfx942" in task_text(written, TASKS[1])
    frame = targets_frame(trial_rows([run]))
    assert list(frame["machine_code"]) == ["right", "", "wrong", ""]
    assert list(frame["machine_code_detail"])[2] == "3 of 4 elements wrong"


def test_without_targets_there_is_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "targets.csv").write_text("of an earlier report", encoding="utf-8")
    written = write_report([b.simple([1.5, 2.0])], tmp_path)
    text = written.index.read_text(encoding="utf-8")
    for words in ('id="targets"', "#targets", "targets.csv", "Builds for", "Resource use", "portability"):
        assert words not in text
    assert not (tmp_path / "targets.csv").exists()
    assert "## Targets" not in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_targets_that_could_not_be_checked_still_give_a_report(tmp_path: Path) -> None:
    run = b.run([b.trial(targets=(b.unchecked("gfx950"),))])
    report = write_report([run], tmp_path)
    page = Page(report.index.read_text(encoding="utf-8"))
    assert "not checked gfx950" in Page(task_text(report, "triton2triton/norm/rms")).text
    assert "No candidate is tied to one vendor" in page.text
    frame = targets_frame(trial_rows([run]))
    assert list(frame.outcome) == ["not_checked"]
    assert frame.registers.isna().all()
