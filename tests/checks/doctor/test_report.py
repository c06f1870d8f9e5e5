"""The file of `arena doctor --report`: its schema, what is taken out of it, what of earlier runs is put into it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest
from typer.testing import CliRunner

from arena.checks.doctor import full, quick, report, timing
from arena.checks.doctor.evidence import ItemOutcome, ItemResult
from arena.checks.doctor.inventory import Check
from arena.checks.doctor.report import PrivateData
from arena.checks.doctor.timing import KernelTiming, TimingErrors
from arena.cli.app import app
from arena.errors import FileError, InfrastructureError, UsageError
from arena.package import PACKAGE
from tests.fakes import HERE

ROWS = (Check("hipcc (amd)", True, "/data/al/bin/hipcc"),)
MACHINE = report.MachineReport(HERE, ROWS, ("1 other process uses this GPU",))
GOOD = ItemResult("wave size", ItemOutcome.PASS, "64", 0.5)
BAD = ItemResult("two clocks", ItemOutcome.FAIL, "log at /data/al/x", 0.1)
SPIN = KernelTiming("spin", 2, "the device's clock", 0.02, 0.0201, 0.02, 0.0202, anchor=False)
TIMED = TimingErrors(HERE, (SPIN,), (), 0.01)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "describe_machine", lambda platform: MACHINE)


def run(*arguments: str) -> tuple[int, BaseException | None]:
    shown = CliRunner().invoke(app, ["doctor", *arguments])
    return shown.exit_code, shown.exception


def test_the_schema_is_that_of_the_file() -> None:
    kept = json.loads((PACKAGE / "task" / "schemas" / "doctor_report.json").read_text(encoding="utf-8"))
    made = json.loads(json.dumps(msgspec.json.schema(report.DoctorReport)))
    assert {name: kept[name] for name in made} == made
    whole = report.new_report(report.DoctorLevel.FULL, MACHINE, items=(GOOD, BAD), timing=TIMED)
    jsonschema.validate(json.loads(msgspec.json.encode(whole)), kept)


def test_what_is_written_is_read_back_without_private_data(tmp_path: Path) -> None:
    whole = report.new_report(report.DoctorLevel.QUICK, MACHINE, items=(GOOD, BAD), timing=TIMED)
    private = PrivateData({"USER": HERE.device.platform + "x"}, "gpu7", Path("/data/al"))
    report.write_report(tmp_path / "seen.json", whole, private)
    found = report.read_report(tmp_path / "seen.json")
    assert found.items == (GOOD, replace(BAD, seen="log at ~/x"))
    assert found.machine == replace(MACHINE, inventory=(replace(ROWS[0], found="~/bin/hipcc"),))
    assert (found.timing, found.level, found.made_at) == (TIMED, whole.level, whole.made_at)
    assert [path.name for path in tmp_path.iterdir()] == ["seen.json"]


def test_names_of_devices_are_no_private_data(tmp_path: Path) -> None:
    whole = report.new_report(report.DoctorLevel.QUICK, MACHINE)
    report.write_report(tmp_path / "seen.json", whole, PrivateData({"USER": HERE.device.platform}, "", Path("/")))
    assert report.read_report(tmp_path / "seen.json").machine.environment == HERE


def test_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(FileError, match="is missing"):
        report.read_report(file)
    file.write_text("no JSON", encoding="utf-8")
    with pytest.raises(FileError, match="no report of"):
        report.read_report(file)


@pytest.mark.usefixtures("machine")
def test_quick_writes_its_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "run_quick", lambda platform, ended, only: (GOOD, BAD))
    assert run("--quick", "--report", str(tmp_path / "new" / "seen.json"))[0] == 1
    found = report.read_report(tmp_path / "new" / "seen.json")
    assert [item.outcome for item in found.items] == [ItemOutcome.PASS, ItemOutcome.FAIL]
    assert found.level == "quick" and found.machine.warnings == MACHINE.warnings


@pytest.mark.usefixtures("machine")
def test_a_run_that_ends_early_writes_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(platform: str, began: object) -> TimingErrors:
        raise InfrastructureError("no device")

    monkeypatch.setattr(timing, "check_timing", fails)
    code, error = run("--timing", "--report", str(tmp_path / "seen.json"))
    assert code == 1 and isinstance(error, InfrastructureError)
    found = report.read_report(tmp_path / "seen.json")
    assert (found.level, found.problem, found.timing) == ("timing", "no device", None)


def test_a_file_that_cannot_be_sent_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for file, problem in ((tmp_path / "seen.xz", "ends in .json"), (tmp_path, "ends in .json")):
        error = run("--full", "--report", str(file))[1]
        assert isinstance(error, UsageError) and problem in str(error)
    (tmp_path / "folder.json").mkdir()
    error = run("--full", "--report", str(tmp_path / "folder.json"))[1]
    assert isinstance(error, UsageError) and "cannot be written" in str(error)


def kept(out: Path, codes: dict[str, int | None], platform: str = "rocm") -> list[full.DoctorStep]:
    """A folder of `--full`: steps that ended with these exit codes, each with a log, and their reports."""
    version = full.version_on(platform)
    ends = {name: {"code": code, "seconds": 2.0, "version": version} for name, code in codes.items()}
    (out / "steps.json").write_text(json.dumps(ends), encoding="utf-8")
    for name in codes:
        (out / f"{name}.log").write_text(f"log of {name}\n", encoding="utf-8")
    quick_machine = replace(MACHINE, warnings=("the device is at 90 °C",))
    parts = {"quick": (GOOD, BAD), "timing": ()}
    for name, items in parts.items():
        part = report.new_report(
            report.DoctorLevel(name), quick_machine, items=items, timing=TIMED if name == "timing" else None
        )
        report.write_report(out / f"{name}.json", part)
    return [full.DoctorStep(name, f"shows {name}", ()) for name in ("quick", "timing", "tests", "check")]


def test_full_packs_items_timings_steps_and_logs(tmp_path: Path) -> None:
    steps = kept(tmp_path, {"quick": 1, "timing": 0, "tests": None})
    found = report.full_report(MACHINE, steps, tmp_path, "rocm")
    assert [(step.name, str(step.outcome), step.exit_code) for step in found.steps] == [
        ("quick", "fail", 1),
        ("timing", "pass", 0),
        ("tests", "skipped", None),
        ("check", "skipped", None),
    ]
    assert [step.output for step in found.steps] == ["log of quick\n", "log of timing\n", "log of tests\n", ""]
    assert [item.name for item in found.items] == [GOOD.name, BAD.name] and found.timing == TIMED
    assert found.machine.warnings == (*MACHINE.warnings, "the device is at 90 °C")


def test_full_packs_nothing_of_another_platform_code_or_device(tmp_path: Path) -> None:
    steps = kept(tmp_path, {"quick": 0, "timing": 0})
    found = report.full_report(MACHINE, steps, tmp_path, "cuda")
    assert {step.outcome for step in found.steps} == {ItemOutcome.SKIPPED} and not found.items
    other = replace(HERE, device=replace(HERE.device, name="another"))
    found = report.full_report(replace(MACHINE, environment=other), steps, tmp_path, "rocm")
    assert not found.items and found.timing is None
    assert report.full_report(MACHINE, kept(tmp_path, {"quick": 3}), tmp_path, "rocm").items == ()


def test_a_long_log_is_cut_in_the_middle(tmp_path: Path) -> None:
    steps = kept(tmp_path, {"tests": 0})
    (tmp_path / "tests.log").write_text("begin" + "x" * 10**6 + "end", encoding="utf-8")
    output = report.full_report(MACHINE, steps, tmp_path, "rocm").steps[2].output
    assert output.startswith("begin") and output.endswith("end") and len(output) <= report.MOST_CHARACTERS


@pytest.mark.slow
def test_a_report_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "seen.json"
    assert run("--quick", "--platform", "cpu", "--item", "wave size", "--report", str(file))[0] == 0
    found = report.read_report(file)
    assert found.machine.environment is not None and found.machine.environment.device.platform == "cpu"
    assert {"python", "torch", "g++ (cpu)"} <= {check.name for check in found.machine.inventory}
    assert [item.outcome for item in found.items] == [ItemOutcome.PASS] and not found.machine.problem
