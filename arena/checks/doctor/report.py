"""The file that an owner sends: what the machine is, and how each item and step of `arena doctor` ended on it.

Written by `arena doctor --report FILE`; `arena/task/schemas/doctor_report.json` is its schema.
"""

from __future__ import annotations

import json
import os
import platform as host_platform
import pwd
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from arena.agents.redaction import Redactor
from arena.checks.doctor.children import ask_child
from arena.checks.doctor.evidence import ItemOutcome, ItemResult
from arena.checks.doctor.full import DoctorStep, StepEnd, checkout, code_version, kept_ends, version_on
from arena.checks.doctor.inventory import Check
from arena.checks.doctor.timing import TimingErrors
from arena.errors import ArenaError, FileError, UsageError
from arena.judge.process.client import JudgeClient
from arena.package import own_folders
from arena.platforms.condition import warnings_before
from arena.processes.printable import shortened
from arena.results.environment import Environment
from arena.runs.runner import now
from arena.task.corpus.strict_yaml import fault
from arena.version import RELEASE, code_hash

_SECRET_NAME = re.compile("TOKEN|KEY|SECRET|PASSW|CREDENTIAL|PROXY|AUTH", re.IGNORECASE)
_CREDENTIALS_OF_URL = re.compile(r"(://)[^/\s:@]+:[^/\s@]+@")
_HOME_OF_ANYBODY = re.compile(r"/(home|Users)/[^/\s'\":,;)]+")
_SHORTEST = 3
_PUBLIC = frozenset({"root", "localhost"})


class PrivateData:
    """The host name, user names, private folders and secret environment variables of this machine.

    Args:
        environment: the environment variables; by default those of this process.
        host: the host name, with or without its domain; by default that of this machine.
        home: the home folder; by default that of this process.
    """

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        host: str | None = None,
        home: Path | None = None,
    ) -> None:
        self._secrets = Redactor({name: value for name, value in environment.items() if _SECRET_NAME.search(name)})
        host = host_platform.node() if host is None else host
        folders = {sys.prefix: "<python>", str(own_folders()[-1]): "<arena>", str(home or Path.home()): "~"}
        self._folders = sorted(((path, mark) for path, mark in folders.items() if path != "/"), key=_by_length)
        named = {host: "<host>", host.partition(".")[0]: "<host>", environment.get("HOSTNAME", ""): "<host>"}
        named.update(dict.fromkeys(_users(environment), "<user>"))
        kept = ((word, mark) for word, mark in named.items() if len(word) >= _SHORTEST and word not in _PUBLIC)
        self._words = [(_whole(word), mark) for word, mark in sorted(kept, key=_by_length)]

    def clean(self, text: str) -> str:
        """Return the text with a mark such as `<host>` or `~` in place of each private datum."""
        text = _CREDENTIALS_OF_URL.sub(r"\1<credentials>@", self._secrets.clean(text))
        for path, mark in self._folders:
            text = re.sub(rf"{re.escape(path)}(?![\w.-])", mark, text)
        text = _HOME_OF_ANYBODY.sub(r"/\1/<user>", text)
        for pattern, mark in self._words:
            text = pattern.sub(mark, text)
        return text


def _users(environment: Mapping[str, str]) -> Iterator[str]:
    yield from (environment.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER"))
    try:
        yield pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have a number alone
        return


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])")


def _by_length(pair: tuple[str, str]) -> int:
    """Longest first: a folder before the one around it."""
    return -len(pair[0])


SCHEMA = "doctor_report"
MOST_CHARACTERS = 100_000
"""of a step's output; GitHub takes files of 25 MB"""
_ROCJITSU = ("ROCJITSU_", "RJ_CONFIG")
SIMULATED = "the device is simulated by rocjitsu: no timing is that of a GPU"
_FREE_TEXT = frozenset({"seen", "found", "cost", "output", "warnings", "problem"})
_INVENTORY_S = 120.0


class DoctorLevel(StrEnum):
    """The forms of `arena doctor`."""

    INVENTORY = "inventory"
    QUICK = "quick"
    TIMING = "timing"
    FULL = "full"


@dataclass(frozen=True)
class MachineReport:
    """The machine: device, libraries and sandbox as a judge sees them, the inventory, warnings about its GPU."""

    environment: Environment | None
    """None where no judge started; `problem` says why"""
    inventory: tuple[Check, ...]
    warnings: tuple[str, ...]
    """other processes on the GPU, clocks that are held down, temperature: before anything was run"""
    problem: str = ""


@dataclass(frozen=True)
class StepReport:
    """A step of `--full`: skipped where time ran out before its end. `output` is the step's log."""

    name: str
    shows: str
    outcome: ItemOutcome
    exit_code: int | None
    seconds: float
    output: str


@dataclass(frozen=True)
class DoctorReport:
    """One run of `arena doctor`. `commit` is empty without a checkout; `code_hash` is that of the package's files."""

    level: DoctorLevel
    made_at: str
    arena_version: str
    commit: str
    code_hash: str
    machine: MachineReport
    items: tuple[ItemResult, ...] = ()
    timing: TimingErrors | None = None
    steps: tuple[StepReport, ...] = ()
    problem: str = ""
    """what ended the run early"""
    schema_version: int = 1


def describe_machine(platform: str) -> MachineReport:
    """Return what this machine is, from a judge and a child, so that this process opens no device.

    Args:
        platform: `cpu`, `cuda`, `rocm` or `auto`.
    """
    warnings = (*_simulation(), *warnings_before(platform))
    environment, problem = None, ""
    try:
        with JudgeClient(platform) as judge:
            environment = judge.environment
    except ArenaError as failure:
        problem = str(failure)
    inventory, ended = ask_child("arena.checks.doctor.inventory", (), tuple[Check, ...], _INVENTORY_S)
    return MachineReport(environment, inventory, warnings, "; ".join(filter(None, (problem, ended))))


def new_report(
    level: DoctorLevel,
    machine: MachineReport,
    *,
    items: Sequence[ItemResult] = (),
    timing: TimingErrors | None = None,
    problem: str = "",
) -> DoctorReport:
    """Return a report of what was just run, with today's date and this code's version.

    Args:
        level: what was run.
        machine: where.
        items: the results of `--quick`.
        timing: the result of `--timing`.
        problem: what ended the run early.
    """
    commit = code_version() if checkout() is not None else ""
    return DoctorReport(level, now(), RELEASE, commit, code_hash(), machine, tuple(items), timing, problem=problem)


def full_report(machine: MachineReport, chosen: Sequence[DoctorStep], out: Path, platform: str) -> DoctorReport:
    """Return a report of the steps in a folder, with the items and timings that two of them reported there.

    Args:
        machine: where they ran.
        chosen: the steps.
        out: the folder of `--out`, with logs, ends and the reports of the steps `quick` and `timing`.
        platform: what the steps were made for; steps of another platform or other code are left out.
    """
    version = version_on(platform)
    ends = {name: end for name, end in kept_ends(out).items() if end.version == version}
    report = new_report(DoctorLevel.FULL, machine)
    parts = [_part(out / f"{name}.json", report) for name in ("quick", "timing") if _ran(ends.get(name))]
    known = [part for part in parts if part is not None]
    warnings = dict.fromkeys(text for part in (report, *known) for text in part.machine.warnings)
    return replace(
        report,
        machine=replace(machine, warnings=tuple(warnings)),
        items=next((part.items for part in known if part.items), ()),
        timing=next((part.timing for part in known if part.timing is not None), None),
        steps=tuple(_step(step, ends.get(step.name), out / f"{step.name}.log") for step in chosen),
    )


def check_writable(file: Path) -> None:
    """Raise `UsageError` unless a report can be written there, before hours are spent on it.

    Args:
        file: must end in `.json`, which GitHub accepts as an attachment.
    """
    if file.suffix != ".json":
        raise UsageError(f"--report {file}: expected a name that ends in .json")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8"):
            pass
    except OSError as problem:
        raise UsageError(f"--report {file}: cannot be written ({problem.strerror})") from None


def write_report(file: Path, report: DoctorReport, private: PrivateData | None = None) -> None:
    """Write a report without what tells who and where its owner is.

    Args:
        file: is replaced.
        report: what is written.
        private: what is taken out; by default what belongs to this process.
    """
    data = _cleaned(msgspec.to_builtins(report), (private or PrivateData()).clean)
    staged = file.with_suffix(".new")
    staged.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    staged.replace(file)


def read_report(file: Path) -> DoctorReport:
    """Return a report that was written before.

    Raises:
        FileError: it is not JSON, or breaks the schema.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise FileError(file, f"no report of `arena doctor --report` ({problem})") from None
    wrong = fault(data, SCHEMA)
    if wrong is not None:
        raise FileError(file, wrong[1], key=".".join(map(str, wrong[0])))
    return msgspec.convert(data, DoctorReport)


def _simulation() -> Iterator[str]:
    """A warning where rocjitsu has started this process: it leaves its variables, and preloads its library."""
    if "rocjitsu" in os.environ.get("LD_PRELOAD", "") or any(name.startswith(_ROCJITSU) for name in os.environ):
        yield SIMULATED


def _part(file: Path, whole: DoctorReport) -> DoctorReport | None:
    """The report of a step; None where there is none, or it is not of the same device and code."""
    try:
        part = read_report(file)
    except FileError:
        return None
    mine, theirs = whole.machine.environment, part.machine.environment
    same_device = theirs is None or mine is None or mine.comparable_with(theirs)
    return part if same_device and part.code_hash == whole.code_hash else None


def _ran(end: StepEnd | None) -> bool:
    """Return whether a step came to its own end: 1 is an item that failed."""
    return end is not None and end.code in (0, 1)


def _step(step: DoctorStep, end: StepEnd | None, log: Path) -> StepReport:
    if end is None:
        return StepReport(step.name, step.shows, ItemOutcome.SKIPPED, None, 0.0, "")
    outcome = {None: ItemOutcome.SKIPPED, 0: ItemOutcome.PASS}.get(end.code, ItemOutcome.FAIL)
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return StepReport(step.name, step.shows, outcome, end.code, end.seconds, shortened(text, MOST_CHARACTERS))


def _cleaned(data: Any, clean: Callable[[str], str], *, free: bool = False) -> Any:
    """Clean what is free text; names of devices, versions and outcomes are what they are."""
    if isinstance(data, dict):
        return {key: _cleaned(value, clean, free=key in _FREE_TEXT) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_cleaned(value, clean, free=free) for value in data]
    return clean(data) if free and isinstance(data, str) else data
