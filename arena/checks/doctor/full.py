"""Every step that a claim about a GPU rests on, in order, within a number of seconds, resumable.

The output of a step is kept in OUT/NAME.log, its end in OUT/steps.json. A step that passed is not repeated while the
code is the same. Steps with tests and fixtures need a checkout of the repository.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from arena import __version__
from arena.errors import UsageError
from arena.package import own_folders
from arena.processes.python_child import python_module

ARENA = tuple(python_module("arena"))
PYTEST = tuple(python_module("pytest", "-q", "-p", "no:cacheprovider"))
CHEATS = "tests/judge/test_cheats.py"
_LEAST_S = 20.0
_A_FEW = ("--most", "8", "--effort", "screen", "--in-flight", "1")
_GRACE_S = 30.0
_ENDS = "steps.json"


@dataclass(frozen=True)
class DoctorStep:
    """One command, and what it shows."""

    name: str
    shows: str
    command: tuple[str, ...]
    resumes: bool = False
    """an interrupted one continues where it stopped"""


@dataclass(frozen=True)
class StepEnd:
    """The end of a step: exit code, None where time ran out; the seconds of all its runs; which code, on what."""

    code: int | None
    seconds: float
    version: str


def checkout() -> Path | None:
    """Return the repository around the package, or None where a wheel is installed."""
    root = own_folders()[-1]
    return root if (root / "tests").is_dir() and (root / "tools").is_dir() else None


def steps(platform: str, devices: str, out: Path) -> list[DoctorStep]:
    """Return what is run, the cheapest and most fundamental first.

    Args:
        platform: `cpu`, `cuda`, `rocm` or `auto`.
        devices: as in `arena run --devices`; empty for the first.
        out: where task checks and runs are kept.
    """
    on = ("--platform", platform)
    spread = ("--devices", devices) if devices else ()
    run = ("--runs-dir", str(out / "runs"), "--reports-dir", str(out / "reports"))
    check = ("tasks", "check", *on, *spread, "--targets", "", "--resume", "--out", str(out / "check"))
    installed = [
        DoctorStep("quick", "kernels run, buffers are shared, workers are confined", _reported("quick", on, out)),
        DoctorStep("timing", "the timing error", _reported("timing", on, out)),
        DoctorStep("check", "every task: A/A, roofline, duration", (*ARENA, *check), resumes=True),
        DoctorStep("full", "baseline and expert of every task", (*ARENA, "run", "full", *on, *spread, *run), True),
    ]
    root = checkout()
    if root is None:
        return installed

    def tool(name: str, *arguments: str) -> tuple[str, ...]:
        return (sys.executable, str(root / "tools" / f"{name}.py"), *arguments)  # whose folder is on its search path

    results = ("--results", str(out / "cheats.json"))
    cheats = tool("cheat_table", "--run", "--gpu", "--missing", *results)
    from_checkout = [
        DoctorStep(
            "tests",
            "faults, profiling, waiting for an idle device",
            (*PYTEST, "-m", "gpu", "tests", f"--ignore={CHEATS}"),
        ),
        DoctorStep("cheats", "cheat fixtures on this device", cheats, resumes=True),
        DoctorStep("split", "the cost of confinement and of workers", tool("split_cost", *on)),
        DoctorStep("cost", "seconds per evaluation", tool("throughput", *on, *_A_FEW)),
    ]
    last = DoctorStep("calibration", "A/A and experts", tool("calibration", str(out / "runs/full")))
    return [*installed[:2], *from_checkout, *installed[2:], last]


def _reported(level: str, on: tuple[str, ...], out: Path) -> tuple[str, ...]:
    return (*ARENA, "doctor", f"--{level}", *on, "--report", str(out / f"{level}.json"))


def run_full(
    chosen: Sequence[DoctorStep],
    out: Path,
    deadline: float,
    on_line: Callable[[str], None],
    *,
    platform: str = "auto",
    again: bool = False,
) -> int:
    """Run the steps that are due.

    Args:
        chosen: the steps, in order.
        out: where logs and ends are kept.
        deadline: in seconds of `time.monotonic`.
        on_line: is called with a line for each step.
        platform: what the steps were made for; what passed on another is repeated.
        again: repeat what has passed.

    Returns:
        The exit code: 0 if all passed, 1 if one failed, 2 if some were not reached.
    """
    out.mkdir(parents=True, exist_ok=True)
    version, ends = version_on(platform), kept_ends(out)
    for step in chosen:
        before = ends.get(step.name)
        left_s = deadline - time.monotonic()
        if before is not None and (before.code, before.version) == (0, version) and not again:
            on_line(f"{step.name:12} passed before, in {before.seconds:.0f} s")
        elif left_s < _LEAST_S:
            on_line(f"{step.name:12} not reached")
            ends[step.name] = before or StepEnd(None, 0.0, version)
        else:
            spent_s = before.seconds if before is not None and step.resumes and before.version == version else 0.0
            on_line(f"{step.name:12} {step.shows}: {' '.join(step.command)}")
            code, seconds = run_step(step, out / f"{step.name}.log", left_s)
            ends[step.name] = StepEnd(code, spent_s + seconds, version)
            word = {0: "passed", None: "out of time"}.get(code, f"failed with exit code {code}")
            on_line(f"{step.name:12} {word}, {spent_s + seconds:.0f} s: {out / step.name}.log")
        (out / _ENDS).write_text(
            json.dumps({name: asdict(end) for name, end in ends.items()}, indent=1), encoding="utf-8"
        )
    codes = [ends[step.name].code for step in chosen]
    return 1 if any(codes) else 2 if None in codes else 0


def chosen_steps(every: Sequence[DoctorStep], only: Sequence[str]) -> list[DoctorStep]:
    """Return the steps with these names, all where none is named.

    Raises:
        UsageError: a name is no step's.
    """
    unknown = set(only) - {step.name for step in every}
    if unknown:
        names = ", ".join(step.name for step in every)
        raise UsageError(f"no step is called {', '.join(sorted(unknown))}; there are: {names}")
    return [step for step in every if not only or step.name in only]


def run_step(step: DoctorStep, log: Path, seconds: float) -> tuple[int | None, float]:
    """Return its exit code, None where time ran out, and the seconds it took. It is interrupted first, as by Ctrl-C."""
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        child = subprocess.Popen(step.command, stdout=file, stderr=subprocess.STDOUT, cwd=checkout())
        try:
            code: int | None = child.wait(None if seconds == float("inf") else seconds)
        except subprocess.TimeoutExpired:
            code = None
            child.send_signal(signal.SIGINT)
            try:
                child.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
    return code, time.monotonic() - began


def kept_ends(out: Path) -> dict[str, StepEnd]:
    """Return how the steps ended whose logs are in this folder, by name."""
    kept = out / _ENDS
    return (
        {name: StepEnd(**end) for name, end in json.loads(kept.read_text(encoding="utf-8")).items()}
        if kept.is_file()
        else {}
    )


def version_on(platform: str) -> str:
    """Return what a step depends on: the code, and the platform that was asked for."""
    return f"{code_version()} on {platform}"


def code_version() -> str:
    """Return the commit, with a mark where files differ from it; the version where no checkout is there."""
    root = checkout()
    if root is None:
        return __version__
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, cwd=root
    ).stdout.strip()
