"""`arena tasks check`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from arena.cli.console import err, examples, out, print_json
from arena.cli.corpora import TasksDirs
from arena.cli.devices import DEVICES, Platform, chosen_devices
from arena.cli.options import chosen_options, takes_options
from arena.errors import FileError
from arena.results.messages import for_terminal
from arena.task.options import EVALUATE

if TYPE_CHECKING:
    from arena.results.check import TaskCheck
    from arena.task.corpus.corpora import Corpora
    from arena.task.definition import Task

EXAMPLES = examples(
    "arena tasks check",
    "arena tasks check rms_norm --details",
    "arena tasks check .                        # in the folder of a task",
    "arena tasks check 'hip2hip/*' 'torch2hip/*' --targets gfx90a,gfx942,gfx950,sm_90",
    "arena tasks check --targets gfx942 --execute",
    "arena tasks check --mutants --resume",
    "arena tasks check --platform cuda --resume --devices all",
)
_DEFAULT_TARGETS = ("gfx942", "sm_90")
_MOST_MUTANTS = 40
_WORTH_SAYING_S = 0.1
CHECKS = Path("runs/tasks-check")
EVERY_LAUNCH = typer.Option("--every-launch", help="Build every launch, not each Triton signature once.")
TIMING = typer.Option("--timing/--no-timing", help="Time kernels against themselves, on a GPU.")
MUTANTS = typer.Option("--mutants", help="Check only mutants of kernels and omissions of inputs; on the CPU.")


@takes_options(EVALUATE, names=("seeds", "targets", "execute"), others={"targets": _DEFAULT_TARGETS})
def check(
    patterns: Annotated[
        list[str] | None, typer.Argument(help="Ids, globs or task folders; default: all tasks.")
    ] = None,
    tasks_dir: TasksDirs = None,
    platform: Platform = "auto",
    every_launch: Annotated[bool, EVERY_LAUNCH] = False,
    timing: Annotated[bool, TIMING] = True,
    mutants: Annotated[bool, MUTANTS] = False,
    most: Annotated[int, typer.Option(help="Limit on mutants of one kernel.", min=1)] = _MOST_MUTANTS,
    jobs: Annotated[int, typer.Option(help="Tasks at a time on the CPU; 0: one a core.", min=0)] = 0,
    devices: Annotated[str, DEVICES] = "",
    folder: Annotated[Path, typer.Option("--out", help="Folder for the checks.")] = CHECKS,
    resume: Annotated[bool, typer.Option("--resume", help="Skip what passed there and has not changed.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Every item of every task.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Check task definitions, cases, kernels and mutants. Exit code 1 if a task fails."""
    from arena.checks.tasks.run import CheckPlan, check_tasks, default_jobs
    from arena.platforms import detect

    where = "cpu" if mutants else (detect() if platform == "auto" else platform)
    options = chosen_options({**given, "targets": (), "execute": False} if mutants else given, EVALUATE)
    judges = (None,) * (jobs or default_jobs()) if where == "cpu" else chosen_devices(devices)
    _share_cores(len(judges))
    plan = CheckPlan(where, options, most if mutants else 0, judges, folder / where, resume, every_launch, timing)
    corpora, chosen, malformed = _loaded(tasks_dir or (), patterns or ["*"])
    with _bar() as bar:
        line = bar.add_task("tasks", total=len(chosen))

        def ended(one: TaskCheck) -> None:
            bar.advance(line)
            if not as_json:
                for text in _lines(one, details=details):
                    out.print(text, soft_wrap=True, highlight=False)

        checks = check_tasks(chosen, corpora.load_valid(), plan, ended)
    if as_json:
        print_json(checks)
    else:
        for text in _totals(checks, len(malformed)):
            out.print(text, highlight=False)
    for problem in malformed:
        err.print(f"[red]{escape(problem)}[/red]", soft_wrap=True, highlight=False)
    if malformed or any(one.failed for one in checks):
        raise typer.Exit(1)


def _loaded(folders: Sequence[Path], patterns: Sequence[str]) -> tuple[Corpora, dict[str, Task], list[str]]:
    """Load the chosen tasks one by one; a malformed one is a message, and the others are checked."""
    from arena.task.corpus.corpora import open_corpora

    loaded, malformed = {}, []
    corpora, wanted = open_corpora(folders).including(patterns)
    for name in corpora.select(wanted):
        try:
            loaded[name] = corpora.load(name)
        except FileError as problem:
            malformed.append(str(problem))
    return corpora, loaded, malformed


def _share_cores(judges: int) -> None:
    """Give each judge its share of the cores: threads that are more than these spin in each other's way."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // judges)))


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=err, transient=True)


def _lines(check: TaskCheck, *, details: bool) -> list[str]:
    """A line for the task; below it what failed, or, in detail, every item."""
    from arena.results.check import CheckOutcome

    colours = {
        CheckOutcome.PASSED: "green",
        CheckOutcome.FAILED: "red",
        CheckOutcome.DECLARED: "cyan",
        CheckOutcome.NOT_CHECKED: "yellow",
    }
    verdict = "[red]failed[/red]" if check.failed else "[green]passed[/green]"
    counts = Counter(item.outcome for item in check.items)
    counted = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.items())
    score = "" if check.mutation_score is None else f", mutation score {check.mutation_score:.0%}"
    lines = [f"{verdict} {check.task:<58} {check.seconds:5.1f} s  {counted}{score}"]
    for item in check.items:
        if details or item.outcome is CheckOutcome.FAILED:
            colour = colours[item.outcome]
            took = f" [dim]({item.seconds:.1f} s)[/dim]" if item.seconds >= _WORTH_SAYING_S else ""
            text = f"{escape(item.name)}: {escape(for_terminal(item.detail))}{took}"
            lines.append(f"    [{colour}]{item.outcome:<11}[/{colour}] {text}")
    return lines


def _totals(checks: Sequence[TaskCheck], malformed: int) -> list[str]:
    """Counts, the slowest five, the worst A/A and the mutation score. `malformed` tasks were not checked."""
    from arena.results.check import CheckOutcome

    failed = sum(bool(check.failed) for check in checks)
    skipped = sum(item.outcome is CheckOutcome.NOT_CHECKED for check in checks for item in check.items)
    lines = [f"{len(checks) - failed} of {len(checks) + malformed} tasks passed; {skipped} items were not checked"]
    lines += [f"{malformed} of these tasks could not be checked, since a file is malformed"] if malformed else []
    slowest = sorted(checks, key=lambda check: check.seconds, reverse=True)[:5]
    lines += ["slowest: " + ", ".join(f"{check.task} {check.seconds:.1f} s" for check in slowest)] if slowest else []
    deviations = [(check.aa_worst, check.task) for check in checks if check.aa_worst is not None]
    if deviations:
        worst, task = max(deviations)
        lines.append(f"worst A/A: {worst:.2%} from 1 ({task})")
    fates = [fate for check in checks for fate in check.counted]
    if fates:
        rejected = sum(not fate.survived for fate in fates)
        lines.append(f"mutants: {rejected} of {len(fates)} rejected ({rejected / len(fates):.1%})")
        operators = {fate.operator: [other for other in fates if other.operator == fate.operator] for fate in fates}
        shares = {name: sum(not fate.survived for fate in group) / len(group) for name, group in operators.items()}
        least = sorted(shares.items(), key=lambda one: one[1])
        lines.append("by operator: " + ", ".join(f"{name} {share:.1%}" for name, share in least))
    return lines
