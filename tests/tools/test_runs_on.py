"""The table "Runs on" of the README has a row for each kept report, and these are as they were sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.checks.doctor.evidence import ItemOutcome, ItemResult
from arena.checks.doctor.report import (
    SIMULATED,
    DoctorLevel,
    DoctorReport,
    MachineReport,
    PrivateData,
    _simulation,
    new_report,
    read_report,
    write_report,
)
from arena.results.environment import Environment
from tests.fakes import DEVICE, HERE
from tests.tools import ROOT, load

TOOL = load("figures.runs_on")
KEPT = sorted((ROOT / "reports" / "runs-on").glob("*.json"))
OUTCOMES = (ItemOutcome.PASS, ItemOutcome.PASS, ItemOutcome.FAIL, ItemOutcome.SKIPPED)
ITEMS = tuple(ItemResult(f"item {number}", outcome, "", 0.0) for number, outcome in enumerate(OUTCOMES))


def sent(environment: Environment | None = HERE, day: str = "2026-11-24", commit: str = "0123abc") -> DoctorReport:
    made = new_report(DoctorLevel.QUICK, MachineReport(environment, (), ()), items=ITEMS)
    return replace(made, made_at=f"{day}T10:00:00+00:00", commit=commit)


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_kept_reports_are_of_a_commit_and_private(file: Path) -> None:
    report = read_report(file)
    assert report.commit and not report.commit.endswith("-dirty"), "made from files that no commit has"
    text = file.read_text(encoding="utf-8")
    assert PrivateData({}, "", Path("/root")).clean(text) == text


def test_another_report_is_another_row(tmp_path: Path) -> None:
    write_report(tmp_path / "cpu.json", sent())
    gpu = replace(HERE, device=replace(DEVICE, platform="rocm", arch="gfx942", name="AMD Instinct MI300X"))
    write_report(tmp_path / "mi300x.json", sent(gpu, "2026-11-25"))
    rows = TOOL.table(tmp_path).splitlines()[2:]
    counts = "2 of 4, 1 failed, 1 skipped | – |"
    assert rows == [
        f"| AMD Instinct MI300X | gfx942 | [2026-11-25](reports/runs-on/mi300x.json) | `0123abc` | {counts}",
        f"| CPU platform (a processor) | cpu | [2026-11-24](reports/runs-on/cpu.json) | `0123abc` | {counts}",
    ]


def test_a_machine_without_a_judge_and_a_wheel_have_rows_too() -> None:
    assert TOOL.row(sent(None, commit=""), Path("x.json")).startswith("| unknown: no judge started | – | [2026-11-24]")


def test_a_simulated_device_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SIMULATED not in list(_simulation())
    with monkeypatch.context() as patch:
        patch.setenv("RJ_CONFIG", "/opt/mi300x.json")
        assert SIMULATED in list(_simulation())
    monkeypatch.setenv("LD_PRELOAD", "/opt/librocjitsu_kmd.so")
    made = sent()
    assert "simulated" not in TOOL.row(made, Path("x.json"))
    made = replace(made, machine=replace(made.machine, warnings=tuple(_simulation())))
    assert TOOL.row(made, Path("x.json")).startswith("| CPU platform (a processor), simulated by rocjitsu | cpu |")
