"""The candidates that `arena doctor --quick` evaluates, and their options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from arena.checks.doctor.evidence import DATA
from arena.task.corpus.task_folder import TASKS
from arena.task.options import Options

SOFTMAX = TASKS / "hip2hip" / "modules" / "softmax"
RMS_NORM = TASKS / "triton2triton" / "normalization" / "rms_norm"

START_HIP = "start_hip"
START_TRITON = "start_triton"
WRONG = "wrong"
PAST_THE_END = "past_the_end"
ASSUMES_32 = "assumes_32_lanes"
WAITS = "waits"

_QUICK = Options(heldout=False, seeds=1, max_work=2e4, call_timeout_s=30.0, timing_budget_s=0.05)
_TIMED = structs.replace(_QUICK, max_work=None, timing_budget_s=0.16)


@dataclass(frozen=True)
class Candidate:
    """One file for one task. `timed`: on a GPU all seen cases, so that one of them takes long enough to time."""

    task: Path
    file: Path
    timed: bool = False

    def options(self, *, emulated: bool) -> Options:
        """Return how the judge is asked; an emulation runs the smallest cases only."""
        return _TIMED if self.timed and not emulated else _QUICK


CANDIDATES = {
    START_HIP: Candidate(SOFTMAX, SOFTMAX / "kernel.hip", timed=True),
    START_TRITON: Candidate(RMS_NORM, RMS_NORM / "kernel.py"),
    WAITS: Candidate(SOFTMAX, DATA / f"{WAITS}.hip", timed=True),
    **{name: Candidate(SOFTMAX, DATA / f"{name}.hip") for name in (WRONG, PAST_THE_END, ASSUMES_32)},
}
