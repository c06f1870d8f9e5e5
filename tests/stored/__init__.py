"""Evaluations by the real judge on the CPU platform, kept as JSON, and a judge that gives them again.

`python -m tests.stored` makes them. Tests of adapters serve them, so that all adapters get the same answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from arena.judge.process.messages import Progress
from arena.results.outcome import Outcome
from arena.results.record import Evaluation, Split
from arena.results.reward import bounded_reward, reward
from arena.results.verdict import Stage, Status
from arena.runs.serve.routes import EpisodeServer
from arena.runs.serve.views import Final
from arena.task.corpus.task_folder import TASKS
from arena.task.options import Options
from tests.runs.serve.serving import Judge, served

TASK = "triton2triton/normalization/rms_norm"
PLACE = Path(__file__).with_name("evaluations.json")
OUTCOMES = {
    "faster": (Outcome.SOLVED, Status.PASSED),
    "slower": (Outcome.SOLVED, Status.PASSED),
    "noisy": (Outcome.SOLVED, Status.PASSED),
    "wrong": (Outcome.FAILED, Status.WRONG_RESULT),
    "wrong_unseen": (Outcome.OVERFIT, Status.PASSED),
    "compile_error": (Outcome.FAILED, Status.COMPILE_ERROR),
    "cheat": (Outcome.FAILED, Status.RULE_VIOLATION),
    "nothing": (Outcome.NOT_HANDED_IN, Status.NOTHING_SUBMITTED),
}


@dataclass(frozen=True)
class StoredEvaluation:
    """What the judge said of a kernel, and what the server made of it; no kernel and no evaluation for `nothing`."""

    name: str
    kernel: str | None
    evaluation: Evaluation | None
    final: Final

    def expected(self, scheme: str) -> float:
        """Return the reward that the formulas give for the evaluation."""
        speedup = self.evaluation.seen_speedup if self.evaluation is not None else None
        status = self.evaluation.status if self.evaluation is not None else Status.NOTHING_SUBMITTED
        overfit = self.name == "wrong_unseen"
        if scheme == "bounded":
            return bounded_reward(speedup, overfit=overfit)
        return reward(status, speedup, overfit=overfit)


def problem(one: StoredEvaluation) -> str:
    """Return why it is not what its name says; empty where it is."""
    final, evaluation = one.final, one.evaluation
    noisy = evaluation is not None and any(case.timing and case.timing.noisy for case in evaluation.split(Split.SEEN))
    if (final.outcome, final.stage_status) != OUTCOMES[one.name]:
        return f"expected {OUTCOMES[one.name]}, not {final.outcome} and {final.stage_status}"
    if noisy is not (one.name == "noisy"):
        return f"noisy: {noisy}"
    if final.stage_status is Status.PASSED:
        assert final.speedup is not None and final.heldout is not None
        if one.name in ("faster", "slower") and (final.speedup > 1) is not (one.name == "faster"):
            return f"speedup {final.speedup}"
    return ""


def read() -> dict[str, StoredEvaluation]:
    """Return all of them by name."""
    found = msgspec.json.decode(PLACE.read_bytes(), type=list[StoredEvaluation])
    return {one.name: one for one in found}


def write(found: list[StoredEvaluation]) -> None:
    """Keep these in place of what is there."""
    PLACE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


class StoredJudge(Judge):
    """Gives the stored evaluation of a kernel; without its held-out part where that was not asked for."""

    def __init__(self, stored: dict[str, StoredEvaluation]) -> None:
        super().__init__()
        self._known = {one.kernel: one.evaluation for one in stored.values() if one.evaluation is not None}
        self.environment = next(iter(self._known.values())).environment

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None],
        heldout: Path | None = None,
        compiled: Path | None = None,
    ) -> Evaluation:
        found = self._known[candidate.read_text(encoding="utf-8")]
        if options.heldout:
            return found
        verdicts = tuple(one for one in found.verdicts if one.stage is not Stage.HELDOUT)
        return replace(found, verdicts=verdicts, cases=found.split(Split.SEEN))


@contextmanager
def serving(root: Path) -> Iterator[EpisodeServer]:
    """Serve the stored evaluations; records are below `root/run`."""
    if not (root / "tasks").is_dir():
        shutil.copytree(TASKS / TASK, root / "tasks" / TASK)
    with (
        served(root, StoredJudge(read())) as (episodes, _),
        EpisodeServer(episodes) as server,
    ):
        yield server
