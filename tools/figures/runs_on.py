"""Make the table "Runs on" of README.md from the reports that owners sent: reports/runs-on/*.json.

arena doctor --full --platform rocm --report doctor-mi300x.json     makes such a report
python tools/claims.py                                              writes the table; a test keeps it in step
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from arena.checks.doctor.evidence import ItemOutcome
from arena.checks.doctor.report import SIMULATED, DoctorReport, read_report

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports" / "runs-on"
_HEAD = "| device | architecture | date | commit | items passed | steps passed |\n| --- | --- | --- | --- | --- | --- |"


def table(folder: Path) -> str:
    """A row for each report in the folder, the newest first."""
    found = sorted(((read_report(file), file) for file in folder.glob("*.json")), key=_made_at, reverse=True)
    return "\n".join([_HEAD, *(row(report, file) for report, file in found)])


def row(report: DoctorReport, file: Path) -> str:
    """The row of one report; its date leads to the file."""
    environment = report.machine.environment
    device = "unknown: no judge started" if environment is None else environment.device.name
    if environment is not None and environment.device.emulated:
        device = f"CPU platform ({device})"
    if SIMULATED in report.machine.warnings:
        device = f"{device}, simulated by rocjitsu"
    arch = "–" if environment is None else environment.device.arch
    date = f"[{report.made_at[:10]}](reports/runs-on/{file.name})"
    commit = f"`{report.commit}`" if report.commit else report.arena_version
    items = passed(item.outcome for item in report.items)
    return f"| {' | '.join((device, arch, date, commit, items, passed(step.outcome for step in report.steps)))} |"


def passed(outcomes: Iterable[ItemOutcome]) -> str:
    """`15 of 18, 1 failed, 2 skipped`; a dash where nothing was run. A warning did not pass."""
    seen = list(outcomes)
    others = {"failed": ItemOutcome.FAIL, "with a warning": ItemOutcome.WARNING, "skipped": ItemOutcome.SKIPPED}
    counts = [f"{seen.count(outcome)} {word}" for word, outcome in others.items() if outcome in seen]
    return ", ".join([f"{seen.count(ItemOutcome.PASS)} of {len(seen)}", *counts]) if seen else "–"


def _made_at(pair: tuple[DoctorReport, Path]) -> tuple[str, str]:
    return pair[0].made_at, pair[1].name
