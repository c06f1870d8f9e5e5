"""Print what `arena verify` found: what was not reproduced, counts of figures, and the private draw."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from arena.cli.console import err, out
from arena.results.record import Estimate
from arena.results.verification import FigureKind, Reproduction, TrialVerification, Value, Verification

_NONE = "–"


def show(verification: Verification) -> None:
    """Print notes and figures that were not reproduced, then the counts."""
    for note in _notes(verification):
        err.print(f"[yellow]{escape(note)}[/yellow]", highlight=False, soft_wrap=True)
    for line in _unreproduced(verification):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    out.print(_counts(verification))
    private = _private(verification)
    if private.row_count:
        out.print(private)


def _notes(verification: Verification) -> Iterable[str]:
    yield from verification.notes
    changed = sum(trial.task_changed for trial in verification.trials)
    if changed:
        all_trials = len(verification.trials)
        yield f"task changed since the record: {changed} of {all_trials} trials, whose figures do not count"
    if not verification.recorded_on.comparable_with(verification.repeated_on):
        there, here = verification.recorded_on.device.name, verification.repeated_on.device.name
        yield f"recorded on {there}, judged again on {here}: no speedup can be decided"


def _unreproduced(verification: Verification) -> Iterable[str]:
    for trial in verification.trials:
        for figure in trial.figures:
            if figure.outcome is Reproduction.NOT_REPRODUCED:
                values = f"recorded {_value(figure.recorded)}, here {_value(figure.repeated)}"
                why = f" ({figure.reason})" if figure.reason else ""
                changed = " · task changed" if trial.task_changed else ""
                yield f"not reproduced: {_trial(trial)} · {figure.name}: {values}{why}{changed}"


def _trial(trial: TrialVerification) -> str:
    return f"{trial.agent} · {trial.task} · attempt {trial.attempt}"


def _value(value: Value) -> str:
    if isinstance(value, Estimate):
        return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
    return value or _NONE


def _counts(verification: Verification) -> Table:
    judged = f"{len(verification.trials)} of {verification.verifiable} trials with a kernel"
    table = Table(title=f"{verification.run}: figures of {judged}")
    table.add_column("figures")
    for outcome in Reproduction:
        table.add_column(outcome, justify="right")
    for changed, where in ((False, ""), (True, ", task changed")):
        if not any(trial.task_changed is changed for trial in verification.trials):
            continue
        for kind in (*FigureKind, None):
            counts = verification.counts(task_changed=changed, kind=kind)
            name = f"{kind or 'all'}{where}"
            table.add_row(name, *(str(counts[outcome]) for outcome in Reproduction), style="" if kind else "bold")
    return table


def _private(verification: Verification) -> Table:
    """One row per agent, and one per trial that failed a private case."""
    table = Table(title="Private held-out cases, drawn for this verification")
    for heading in ("agent", "task", "cases passed"):
        table.add_column(heading, overflow="fold")
    judged = [(trial, trial.private) for trial in verification.trials if trial.private is not None]
    for agent in dict.fromkeys(trial.agent for trial, _ in judged):
        mine = [(trial, draw) for trial, draw in judged if trial.agent == agent]
        passed, cases = sum(draw.passed for _, draw in mine), sum(draw.cases for _, draw in mine)
        table.add_row(escape(agent), f"all {len(mine)} trials", f"{passed}/{cases}", style="bold")
        for trial, draw in mine:
            if draw.failed:
                table.add_row(escape(agent), escape(trial.task), f"{draw.passed}/{draw.cases}")
    return table
