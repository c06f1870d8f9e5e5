"""The result of one evaluation, printable in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from arena.results.environment import ratio_heading
from arena.results.failures import failures
from arena.results.outcome import Outcome, ended_by, ending, outcome_of
from arena.results.record import Evaluation, Split
from arena.results.release import Corpus
from arena.results.verdict import Status
from arena.task.corpus.release import corpus_of
from arena.task.definition import Task

if TYPE_CHECKING:
    import pandas as pd

_NONE = "–"


@dataclass(frozen=True, repr=False)
class Result:
    r"""What the judge found about one candidate on one task.

    Attributes:
        evaluation: the record as it is stored in run folders: verdict of every stage, every case, raw timing rounds.
        skipped: cases of the task that were not evaluated, since they are too large for this platform or `max_work`.
        corpus: the release of the corpus that holds the task as it is; its `release` is None where none does.

    Examples:
        >>> import arena
        >>> result = arena.evaluate("rms_norm", "not python\n", platform="cpu", heldout=False)
        >>> result.outcome, result.solved, result.stage_status
        (<Outcome.FAILED: 'failed'>, False, <Status.LOAD_ERROR: 'load_error'>)
    """

    evaluation: Evaluation
    skipped: int = 0
    corpus: Corpus | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome: `solved` where every case is right, seen and unseen, `seen only` without unseen ones.

        The baseline unchanged counts like any other kernel here, while a trial that hands it in hands in nothing.
        """
        return outcome_of(self.evaluation, calibration=True)

    @property
    def solved(self) -> bool:
        """Return whether every case that was evaluated is right, and the timing is valid."""
        return self.outcome.solves

    @property
    def stage_status(self) -> Status:
        """The status of the first stage that failed, that of held-out cases too, else `passed`."""
        return ended_by(self.evaluation)

    @property
    def speedup(self) -> float | None:
        """Geometric mean of baseline over candidate latency on the seen cases; None unless these passed.

        On the CPU platform it is a ratio of emulation times, which says nothing about a GPU.
        """
        return self.evaluation.seen_speedup

    @property
    def detail(self) -> str:
        """The reason for the failure, or an empty string."""
        return self.evaluation.failure.detail if self.evaluation.failure else ""

    @property
    def cases(self) -> pd.DataFrame:
        """One row per case.

        Columns: case, split, kind, shape, baseline and candidate (statuses), outcome (of held-out cases), error_ratio
        (error / tolerance), baseline_ms, candidate_ms, speedup (each with _low and _high, a 95 % interval),
        roofline_fraction, mode, noisy, detail. They are those of `cases.csv` in a report.
        """
        from arena.reports.case_frame import evaluation_frame

        return evaluation_frame(self.evaluation)

    @property
    def title(self) -> str:
        """The task, the outcome, and the stage that failed, if one did."""
        if self.evaluation.made_up:
            how = self.evaluation.status.replace("_", " ")
            return f"{self.evaluation.task}: {how} with {self.evaluation.made_up}, no case of the task: no verdict"
        return f"{self.evaluation.task}: {ending(self.outcome, self.evaluation.status)}"

    @property
    def summary(self) -> str:
        """Outcome, speedup on seen cases, and how many cases passed and were skipped, in one line."""
        parts = [self.title]
        if self.speedup is not None:
            parts.append(f"{ratio_heading(self.evaluation.environment.device.emulated)} {self.speedup:.3g}×")
        for split, word in () if self.evaluation.made_up else ((Split.SEEN, "seen"), (Split.HELDOUT, "held-out")):
            ran = [case for case in self.evaluation.split(split) if case.candidate is not Status.NOT_RUN]
            if ran:
                parts.append(f"{word} {sum(case.candidate is Status.PASSED for case in ran)}/{len(ran)}")
        if self.evaluation.unchanged and not self.evaluation.made_up:
            parts.append("the baseline unchanged, which counts as not handed in")
        if self.skipped:
            parts.append(f"{self.skipped} of {len(self.evaluation.cases) + self.skipped} cases skipped as too large")
        return ", ".join(parts)

    def __str__(self) -> str:
        """Summarise in one line, followed by the failures of cases."""
        return "\n".join([self._described(), *(f"  {line}" for line in failures(self.evaluation))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show the summary and a table of cases in a notebook."""
        table = ""
        if self.evaluation.cases:
            shown = self.cases[["case", "split", "shape", "candidate", "error_ratio", "speedup"]]
            table = shown.to_html(index=False, na_rep=_NONE, float_format=lambda x: f"{x:.3g}")
        return f"<p><b>{escape(self._described())}</b></p>{table}"

    def _described(self) -> str:
        return self.summary + (f": {self.detail}" if self.detail else "")


def result_of(evaluation: Evaluation, task: Task, *, heldout: bool, named: Collection[str] = ()) -> Result:
    """Return the result of an evaluation of this task, with or without its held-out cases, or of cases by id."""
    if evaluation.made_up:
        return Result(evaluation, corpus=corpus_of({task.id: task}))
    cases = (*task.seen, *(task.heldout if heldout else ()))
    planned = sum(not named or case.id in named for case in cases)
    return Result(evaluation, planned - len(evaluation.cases), corpus_of({task.id: task}))
