"""What a run shows while it runs: a bar with time left on a terminal, a line per trial elsewhere. All on stderr."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from arena.cli.render import outcome_text
from arena.judge.process.messages import Progress as Step
from arena.results.outcome import Outcome, outcome_of_trial
from arena.results.record import Split, Trial
from arena.results.verdict import Status
from arena.runs.runner import TrialKey, Watcher


class RunDisplay(Watcher):
    """Implements `arena.runs.runner.Watcher`; use as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[step]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._total = self._recorded = self._done = 0
        self._began = time.monotonic()
        self._bar = self._progress.add_task("trials", total=None, step="starting the judge")

    def __enter__(self) -> RunDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def planned(self, total: int, recorded: int) -> None:
        """Set the bar's length; trials with a record are done already."""
        self._total, self._recorded, self._began = total, recorded, time.monotonic()
        self._progress.update(self._bar, total=total, completed=recorded)
        if recorded:
            self._console.print(f"{recorded} of {total} trials are recorded already; going on with the rest")

    def started(self, trial: TrialKey) -> None:
        """Name the trial beside the bar; of several side by side, the one that moved last."""
        self._progress.update(self._bar, step=_name(trial))

    def progress(self, trial: TrialKey, progress: Step) -> None:
        """Name the stage beside the trial."""
        count = f" {progress.done + 1}/{progress.total}" if progress.total > 1 else ""
        self._progress.update(self._bar, step=f"{_name(trial)} · {progress.stage}{count}")

    def finished(self, trial: Trial) -> None:
        """One line for the log, and a step of the bar."""
        self._progress.advance(self._bar)
        self._done += 1
        number = self._recorded + self._done
        outcome = outcome_text(outcome_of_trial(trial), max(map(len, Outcome)))
        self._console.print(
            f"{number:>{len(str(self._total))}}/{self._total} {outcome} {escape(trial.agent):<12} {trial.task:<56} "
            f"{_cases(trial)} {trial.seconds:6.1f} s{self._left(self._total - number)}",
            highlight=False,
            soft_wrap=True,
        )
        if trial.status is Status.HARNESS_ERROR:
            self._console.print(escape(trial.detail), highlight=False, soft_wrap=True)

    def _left(self, trials: int) -> str:
        """Return `, about 4 min left`, by the mean time of the trials so far; empty behind the last."""
        seconds = (time.monotonic() - self._began) / self._done * trials
        if trials <= 0:
            return ""
        return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"

    def noted(self, text: str) -> None:
        """A line of its own, which stays."""
        self._console.print(f"[yellow]{escape(text)}[/yellow]", highlight=False, soft_wrap=True)


def _name(trial: TrialKey) -> str:
    agent, task, attempt = trial
    return f"{agent} · {task} · attempt {attempt}"


def _cases(trial: Trial) -> str:
    """`seen 3/3, held-out 4/6`."""
    if trial.evaluation is None:
        return " " * 25
    counts = []
    for split, label in ((Split.SEEN, "seen"), (Split.HELDOUT, "held-out")):
        cases = trial.evaluation.split(split)
        passed = sum(case.candidate is Status.PASSED for case in cases)
        counts.append(f"{label} {passed}/{len(cases)}")
    return f"{', '.join(counts):<25}"
