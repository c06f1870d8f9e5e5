"""Runs everything that a claim about a GPU rests on, in order, within a number of seconds; goes on where it stopped.

    python tools/prove_on_gpu.py                          all of it; the same command resumes
    python tools/prove_on_gpu.py --seconds 1500           until then; what was not reached is left for the next time
    python tools/prove_on_gpu.py --only check --devices all --out runs/proof
    python tools/prove_on_gpu.py --list                   the steps, and the command of each

What a step printed is kept in OUT/NAME.log, how it ended in OUT/steps.json. A step that has passed is not repeated
while the code is the same (`--again` repeats it). Exit code 1 if a step failed, 2 if some were not reached.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARENA = (sys.executable, "-c", "from arena.cli import main; main()")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
CHEATS = "tests/judge/test_cheats.py"
_LEAST_S = 20.0
_GRACE_S = 30.0


@dataclass(frozen=True)
class Step:
    """One command, and what it shows."""

    name: str
    shows: str
    command: tuple[str, ...]
    resumes: bool = False
    """an interrupted one goes on where it stopped"""


@dataclass(frozen=True)
class Ended:
    """How a step ended: exit code, None where time ran out; the seconds of all its tries; for which code."""

    code: int | None
    seconds: float
    version: str


def steps(platform: str, devices: str, out: Path) -> list[Step]:
    """What is run, the cheapest and most fundamental first."""
    on, tools = ("--platform", platform), ROOT / "tools"
    spread = ("--devices", devices) if devices else ()
    run = ("--runs-dir", str(out / "runs"), "--reports-dir", str(out / "reports"))
    cheats = (sys.executable, str(tools / "cheat_table.py"))
    check = ("tasks", "check", *on, *spread, "--targets", "", "--resume", "--out", str(out / "check"))
    return [
        Step("doctor", "the path from end to end, and the walls", (*ARENA, "doctor", "--self-test", *on)),
        Step("self-check", "the error of the clock", (*ARENA, "evaluate", "--self-check", *on)),
        Step("tests", "faults, profiling, settling", (*PYTEST, "-m", "gpu", "tests", f"--ignore={CHEATS}")),
        Step("cheats", "docs/cheats.md: those not run yet", (*cheats, "--run", "--gpu", "--missing"), resumes=True),
        Step("split", "what walls and workers cost", (sys.executable, str(tools / "split_cost.py"), *on)),
        Step("cost", "seconds per evaluation", (sys.executable, str(tools / "evaluation_cost.py"), *on)),
        Step("check", "every task proves itself: A/A, roofline, pace", (*ARENA, *check), resumes=True),
        Step("full", "noop and expert on every task", (*ARENA, "run", "configs/full.yaml", *on, *spread, *run), True),
        Step("calibration", "A/A and experts", (sys.executable, str(tools / "calibration.py"), str(out / "runs/full"))),
    ]


def main() -> int:
    """Run what has not passed yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="auto", help="auto, cuda or rocm")
    parser.add_argument("--devices", default="", help="for `check` and `full`: all, or numbers such as 0,1")
    parser.add_argument("--out", type=Path, default=Path("runs/proof"))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time for all of it")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this step; may be repeated")
    parser.add_argument("--again", action="store_true", help="also what has passed")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    out = asked.out.resolve()
    chosen = [step for step in steps(asked.platform, asked.devices, out) if not asked.only or step.name in asked.only]
    unknown = set(asked.only) - {step.name for step in chosen}
    if unknown:
        parser.error(f"no step is called {', '.join(sorted(unknown))}; --list names them")
    if asked.list:
        for step in chosen:
            print(f"{step.name:12} {step.shows}\n{'':12} {shlex.join(step.command)}")
        return 0
    return run_all(chosen, out, time.monotonic() + asked.seconds, again=asked.again)


def run_all(chosen: Sequence[Step], out: Path, deadline: float, *, again: bool) -> int:
    """Run the steps that are due, and say how each ended; returns the exit code."""
    out.mkdir(parents=True, exist_ok=True)
    book, version = out / "steps.json", code_version()
    ended = {name: Ended(**kept) for name, kept in json.loads(book.read_text()).items()} if book.is_file() else {}
    for step in chosen:
        before = ended.get(step.name)
        left_s = deadline - time.monotonic()
        if before is not None and (before.code, before.version) == (0, version) and not again:
            print(f"{step.name:12} passed before, in {before.seconds:.0f} s")
        elif left_s < _LEAST_S:
            print(f"{step.name:12} not reached")
            ended[step.name] = before or Ended(None, 0.0, version)
        else:
            spent_s = before.seconds if before is not None and step.resumes and before.version == version else 0.0
            code, seconds = run_one(step, out / f"{step.name}.log", left_s)
            ended[step.name] = Ended(code, spent_s + seconds, version)
            word = {0: "passed", None: "out of time"}.get(code, f"failed with exit code {code}")
            print(f"{step.name:12} {word}, {spent_s + seconds:.0f} s: {out / step.name}.log", flush=True)
        book.write_text(json.dumps({name: asdict(how) for name, how in ended.items()}, indent=1))
    codes = [ended[step.name].code for step in chosen]
    return 1 if any(codes) else 2 if None in codes else 0


def run_one(step: Step, log: Path, seconds: float) -> tuple[int | None, float]:
    """Its exit code, None where time ran out, and the seconds it took. It is interrupted first, as by Ctrl-C."""
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        child = subprocess.Popen(step.command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)
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


def code_version() -> str:
    """The commit, with a mark where files differ from it; empty outside of a repository."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(asked, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
