"""`arena run`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.cli import Interrupted
from arena.cli.console import err, examples
from arena.cli.corpora import TasksDirs
from arena.cli.devices import (
    ACCELERATOR,
    ADDRESS,
    ALLOW_MIXED,
    DEVICES,
    EXECUTOR,
    LOCK_CLOCKS,
    OtherPlatform,
    chosen_devices,
    warn_before,
    with_locked_clocks,
)
from arena.cli.options import FLAG, takes_options
from arena.errors import UsageError
from arena.task.options import RUN, overriding

if TYPE_CHECKING:
    from arena.runs.config import Overrides
    from arena.runs.executors.base import Executor
    from arena.runs.records import RunRecords
    from arena.runs.runner import RunPlan, Watcher

EXAMPLES = examples(
    "arena run quickstart                       # a shipped configuration, by name",
    "arena run my_run.yaml --tasks 'hip2hip/*' --platform cuda --name hip-on-cuda",
    "arena run quickstart --targets gfx942,gfx90a,sm_90 --name ports",
    "arena run coding_agents --jobs 4           # four trials side by side, which take turns at the device",
    "arena run full --devices all               # a judge on every GPU here",
    "arena run full --executor ray --address 10.0.0.1:6379   # a judge on every GPU of a Ray cluster",
    "arena run full --effort screen --name glance   # only seen cases, each until its speedup is known to 5 %",
    "arena run quickstart --track trackio       # a point for each trial in an experiment tracker",
    "arena run quickstart                       # again: goes on where it stopped",
    "arena run quickstart --attempts 3          # grows: two more attempts; more tasks or agents likewise",
    "arena run quickstart --dry-run             # what is left, and what it will take",
    "arena run quickstart --retry noisy         # judge trials again whose timing is noisy",
)
ATTEMPTS = typer.Option(help="Attempts per task and agent; default: the configuration's, else 3.", min=1)
_RETRY = "Judge recorded trials again that ended so: noisy, no-verdict, failed, timing_mismatch, … Sessions are kept."
_TRACK = "Also log each trial to this tracker, which must be installed: `trackio` or `wandb`."
RUNS = Path("runs")
REPORTS = Path("reports")


@takes_options(RUN, defaults=False)
def run(
    config: Annotated[str, typer.Argument(help="Run configuration: a YAML file, or the name of a shipped one.")],
    name: Annotated[str | None, typer.Option(help="Name of the run; its folder is RUNS-DIR/NAME.")] = None,
    platform: OtherPlatform = None,
    tasks: Annotated[list[str] | None, typer.Option(help="Task ids or globs; `!pattern` excludes.")] = None,
    agents: Annotated[list[str] | None, typer.Option(help="Only these agents of the configuration.")] = None,
    attempts: Annotated[int | None, ATTEMPTS] = None,
    jobs: Annotated[int | None, typer.Option(help="Trials side by side; measurements are queued.", min=1)] = None,
    tasks_dir: TasksDirs = None,
    devices: Annotated[str, DEVICES] = "",
    executor: Annotated[str, EXECUTOR] = "local",
    address: Annotated[str, ADDRESS] = "",
    accelerator: Annotated[str, ACCELERATOR] = "",
    lock_clocks: Annotated[bool, LOCK_CLOCKS] = False,
    track: Annotated[str, typer.Option(help=_TRACK)] = "",
    runs_dir: Annotated[Path, typer.Option(help="Folder of the run folders.")] = RUNS,
    reports_dir: Annotated[Path, typer.Option(help="Folder of the reports.")] = REPORTS,
    with_report: Annotated[bool, typer.Option("--report/--no-report", help="Write a report at the end.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, as `arena report` does.")] = False,
    retry: Annotated[list[str] | None, typer.Option(help=_RETRY)] = None,
    limit: Annotated[int | None, typer.Option(help="Run at most so many trials now.", min=1)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and stop.")] = False,
    allow_mixed: Annotated[bool, ALLOW_MIXED] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Run agents on tasks, record every trial, and write a report. The same command resumes an interrupted run."""
    from arena.cli import report as report_command
    from arena.runs.config import Overrides
    from arena.runs.executors import executor as executor_called
    from arena.runs.retry import endings

    wanted = Overrides(
        *(name, platform, tuple(tasks or ()), tuple(agents or ()), attempts, jobs),
        corpora=tuple(folder.resolve() for folder in tasks_dir or ()),
        evaluation=overriding(given, FLAG),
    )
    where = executor_called(executor, address, accelerator)
    plan = replace(_planned(config, wanted), retry=endings(retry or ()), limit=limit, allow_mixed=allow_mixed)
    folder = runs_dir / plan.config.name
    say_estimate(plan, folder)
    if dry_run:
        return
    done = judged(plan, folder, chosen_devices(devices), where, track, lock_clocks=lock_clocks)
    if with_report or as_json:
        report_command.write_and_show([done], reports_dir / plan.config.name, write=with_report, as_json=as_json)
    require_verdicts(done, folder)


def judged(
    plan: RunPlan,
    folder: Path,
    devices: Sequence[int | None],
    where: Executor,
    track: str = "",
    *,
    lock_clocks: bool = False,
) -> RunRecords:
    """Run what is missing of a plan, if anything is; raises `Interrupted` with the command that resumes."""
    try:
        done = _finished(plan, folder) or _run(plan, folder, devices, where, track, lock_clocks=lock_clocks)
    except KeyboardInterrupt:
        raise _interrupted(plan, folder) from None
    if plan.limit and done.missing:
        err.print(f"{done.missing} trials are left; the same command goes on", highlight=False)
    return done


def _planned(config: str, wanted: Overrides) -> RunPlan:
    """Read the configuration, and load its tasks."""
    from arena.runs.config import find_config, load_config, override
    from arena.runs.runner import plan_run

    chosen = override(load_config(find_config(config)), wanted)
    err.print(f"{chosen.name}: loading the tasks", highlight=False)
    return plan_run(chosen)


def say_estimate(plan: RunPlan, folder: Path) -> None:
    """Print how many trials are left, and what they will take by those that are recorded in the same folder of runs."""
    from arena.runs import runner
    from arena.runs.estimate import estimate, recorded_trials

    missing = runner.left(plan, folder)
    if missing:
        recorded = recorded_trials(folder.parent, plan.config.platform, plan.options.effort)
        err.print(f"left: {estimate(missing, recorded)}", highlight=False)


def _finished(plan: RunPlan, folder: Path) -> RunRecords | None:
    """Return the records of a run that is complete, and say so."""
    from arena.runs import runner

    done = runner.finished(plan, folder)
    if done is not None:
        err.print(f"{folder}: {len(done.trials)} of {len(done.trials)} trials are recorded already", highlight=False)
        for one in runner.since(plan, done.info):
            err.print(f"[yellow]warning[/yellow]: since then, {one}; `--name` begins a new run", highlight=False)
    return done


def _run(
    plan: RunPlan, folder: Path, devices: Sequence[int | None], where: Executor, track: str, *, lock_clocks: bool
) -> RunRecords:
    """Start judges, run what is missing, and show it."""
    from arena.cli.progress import RunDisplay
    from arena.runs import runner
    from arena.runs.executors.base import JudgesWanted, started, wanted_of
    from arena.runs.executors.local import LocalExecutor

    _require_agents(plan)
    common = JudgesWanted(plan.config.platform, devices, builds=plan.has_sessions, corpora=plan.config.corpora)
    wanted = wanted_of(plan.tasks_of(), plan.tasks, common)
    agents, tasks, attempts = len(plan.agents), len(plan.tasks), plan.config.attempts
    shape = "" if plan.selected else f" ({agents} agents × {tasks} tasks × {attempts} attempts)"
    planned = f"{len(plan.planned)} trials{shape}"
    places = ", ".join(f"{where.describe(one)}, platform {one.platform}" for one in wanted)
    err.print(f"{planned}; starting {places}", highlight=False)
    here = isinstance(where, LocalExecutor)
    if lock_clocks and not here:
        raise UsageError("--lock-clocks: GPUs of this machine alone can be locked; leave out --executor")
    with ExitStack() as locks:
        for one in wanted if here else ():
            warn_before(one.platform, one.devices, "--devices")
            if lock_clocks:
                locks.enter_context(with_locked_clocks(one.platform, one.devices))
        with RunDisplay(err) as display, _tracked(plan, display, track) as watcher, started(where, wanted) as judges:
            return runner.run(plan, folder, judges, watcher)


def _tracked(plan: RunPlan, display: Watcher, track: str) -> AbstractContextManager[Watcher]:
    """Return the display, or what also logs to a tracker."""
    if not track:
        return nullcontext(display)
    from arena.integrations.tracking import TrackedRun, tracker_called

    facts = {"tasks": len(plan.tasks), "agents": list(plan.agents), "config": plan.config.path}
    return TrackedRun(display, tracker_called(track), plan.config.name, facts)


def _interrupted(plan: RunPlan, folder: Path) -> Interrupted:
    """Say how many trials have a record, and which command runs the others."""
    from arena.runs.records import HEAD, read_run

    planned = len(plan.planned)
    recorded = len(read_run(folder).trials) if (folder / HEAD).is_file() else 0
    command = shlex.join(["arena", *sys.argv[1:]])
    return Interrupted(f"interrupted: {recorded} of {planned} recorded; `{command}` resumes")


def require_verdicts(done: RunRecords, folder: Path) -> None:
    """Exit with code 3 where the harness failed in a trial."""
    from arena.results.verdict import Status

    broken = sum(trial.status is Status.HARNESS_ERROR for trial in done.trials)
    if broken:
        err.print(f"[red]{broken} trials ended without a verdict: the harness failed; see {folder}/trials[/red]")
        raise typer.Exit(3)


def _require_agents(plan: RunPlan) -> None:
    """Raise `UsageError` where an agent cannot start here, before anything else has."""
    lacking = [f"agent {name}: {lack}" for name, agent in plan.agents.items() if (lack := agent.lacks())]
    if lacking:
        raise UsageError(f"{'; '.join(lacking)}. `arena agents` lists all; `--agents` runs only those named")
