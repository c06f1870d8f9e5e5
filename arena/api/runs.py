"""Run configurations, read runs back, and write reports of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.api.arguments import device_number, listed
from arena.errors import UsageError
from arena.runs.records import RunRecords
from arena.runs.submission import read_folder

if TYPE_CHECKING:
    import pandas as pd

    from arena.reports.compare import Comparison
    from arena.reports.rows import TrialRow
    from arena.results.record import RunInfo
    from arena.runs.config import Overrides
    from arena.runs.executors.base import Executor
    from arena.runs.runner import RunPlan


@dataclass(frozen=True)
class Run:
    """A run read back from disk.

    Attributes:
        records: the head of the run folder and its trial records.
    """

    records: RunRecords

    @property
    def info(self) -> RunInfo:
        """What was asked for: agents, tasks, attempts, device."""
        return self.records.info

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.records.path

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per planned trial: agent, task, attempt, outcome, whether it compiled and was right, speedups.

        The columns are those of `trials.csv` in a report; see docs/evaluate/measures.md.
        """
        from arena.reports.tables import trials_frame

        return trials_frame(self._rows)

    @cached_property
    def cases(self) -> pd.DataFrame:
        """One row per case of every recorded trial; latencies in milliseconds. The columns are those of `cases.csv`."""
        from arena.reports.tables import cases_frame

        return cases_frame(self._rows)

    @cached_property
    def _rows(self) -> list[TrialRow]:
        from arena.reports.rows import trial_rows

        return trial_rows([self.records])

    def __str__(self) -> str:
        """Summarise the run in one line."""
        done = len(self.records.trials)
        return (
            f"{self.info.run}: {len(self.info.agents)} agents, {len(self.info.tasks)} tasks, "
            f"{done} of {len(self.info.planned)} trials recorded"
        )

    def _repr_html_(self) -> str:
        """Show the headline table of a report in a notebook: trials solved of those planned, speedups, losses."""
        from html import escape

        from arena.reports.groups import groups
        from arena.reports.results import RESULTS, results_frame
        from arena.reports.standings import standings

        ordered = standings(self._rows, groups(self._rows, RESULTS))
        shown = results_frame(ordered, self.info.environment.device.emulated)
        return f"<p><b>{escape(self.info.run)}</b></p>{shown.to_html(index=False)}"


def load_run(path: str | PathLike[str]) -> Run:
    """Read a run folder.

    Args:
        path: the folder, such as `runs/quickstart`.

    Returns:
        The run, complete or not.

    Raises:
        RecordError: no run folder, or a record that does not belong to it.
    """
    return Run(read_folder(Path(path)))


def run(
    config: str | PathLike[str],
    *,
    runs_dir: str | PathLike[str] = "runs",
    platform: str | None = None,
    tasks: Sequence[str] = (),
    agents: Sequence[str] = (),
    name: str | None = None,
    devices: Sequence[int] = (),
    executor: str = "local",
    address: str = "",
    allow_mixed: bool = False,
    **options: Any,
) -> Run:
    """Run agents on tasks as a configuration says; a run that was interrupted continues where it stopped.

    Args:
        config: a YAML file, or the name of a shipped configuration such as `quickstart`.
        runs_dir: the run folder is `<runs_dir>/<name>`.
        platform: `cpu`, `cuda`, `rocm` or `auto`, in place of the configuration's.
        tasks: ids or globs in place of the configuration's.
        agents: only these agents of the configuration.
        name: name of the run in place of the configuration's.
        devices: numbers of the GPUs to measure on, one judge each; empty: the first.
        executor: `local`, or `ray` for judges on the GPUs of a Ray cluster, which needs the extra `ray`.
        address: of the Ray cluster; empty: one is started on this machine.
        allow_mixed: go on with a folder that another judge, another agent's program or other limits began.
        **options: of the evaluation, in place of the configuration's: `effort="screen"`; see `arena.Options`.

    Returns:
        The run with one record per trial.

    Raises:
        UsageError: the configuration or an argument is malformed, or the folder holds another run.
        StorageError: the run folder cannot be written.

    Examples:
        >>> import arena, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = arena.run("quickstart", tasks=["rms_norm"], agents=["hardcoded"], runs_dir=folder)
        ...     again = arena.load_run(run.path)
        ...     page = arena.report(run, folder + "/report").name
        >>> run.trials.outcome.tolist(), page
        (['overfit'], 'index.html')
    """
    from arena.runs.config import Overrides
    from arena.task.options import overriding

    chosen_tasks, chosen_agents = listed("tasks", tasks), listed("agents", agents)
    changed = overriding(options)
    overrides = Overrides(name, platform, chosen_tasks, chosen_agents, evaluation=changed)
    return _recorded(str(config), overrides, Path(runs_dir), devices, (executor, address), allow_mixed)


def _recorded(
    config: str,
    overrides: Overrides,
    runs_dir: Path,
    devices: Sequence[int],
    where: tuple[str, str],
    allow_mixed: bool,
) -> Run:
    """Read back a run that is complete, else run what is missing; `where` is an executor and its address."""
    from arena.runs import runner
    from arena.runs.config import find_config, load_config, override
    from arena.runs.executors import executor

    numbers, judges_at = [device_number(device) for device in listed("devices", devices)], executor(*where)
    chosen = override(load_config(find_config(config)), overrides)
    plan, folder = replace(runner.plan_run(chosen), allow_mixed=allow_mixed), runs_dir / chosen.name
    done = runner.finished(plan, folder)
    return Run(_judged(plan, folder, numbers or (None,), judges_at) if done is None else done)


def _judged(plan: RunPlan, folder: Path, devices: Sequence[int | None], where: Executor) -> RunRecords:
    """Start judges, and run what is missing."""
    from arena.runs import runner
    from arena.runs.executors.base import JudgesWanted, started, wanted_of

    common = JudgesWanted(plan.config.platform, devices, builds=plan.has_sessions)
    with started(where, wanted_of(plan.tasks_of(), plan.tasks, common)) as judges:
        return runner.run(plan, folder, judges)


def report(runs: Run | Sequence[Run], out: str | PathLike[str]) -> Path:
    """Write the report of one or several runs: pages, CSV, JSON, Markdown and figures.

    Args:
        runs: one run, or several that are compared side by side.
        out: folder to write to.

    Returns:
        The path of `index.html`.

    Raises:
        UsageError: something else than a run is given, such as a path.
    """
    from arena.reports.pages import write_report

    chosen = [runs] if isinstance(runs, Run) else _runs("report", runs)
    return write_report([one.records for one in chosen], Path(out)).index


def compare(first: Run, second: Run, *, first_agent: str | None = None, second_agent: str | None = None) -> Comparison:
    """Compare two runs, or two agents of one, paired by task and case.

    Args:
        first: a run.
        second: another, or the same.
        first_agent: which agent of the first run, by keyword; required where the run has several.
        second_agent: which agent of the second run, likewise.

    Returns:
        Paired differences in correctness and speed, with 95 % intervals and tests.

    Raises:
        UsageError: something else than two runs is given, an agent is missing, or the runs have no task in common.

    Examples:
        >>> import arena
        >>> arena.compare("runs/monday", "runs/tuesday")
        Traceback (most recent call last):
        arena.errors.UsageError: compare takes runs, such as arena.load_run('runs/monday'), not a str
    """
    from arena.reports.compare import compare_runs, only_agent

    one, two = (run.records for run in _runs("compare", (first, second)))
    agents = only_agent(one, first_agent, "first_agent="), only_agent(two, second_agent, "second_agent=")
    return compare_runs(one, two, *agents)


def _runs(function: str, given: object) -> list[Run]:
    """Return runs as they were given; raises `UsageError` where something else was."""
    runs = []
    for one in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
        if not isinstance(one, Run):
            example = "arena.load_run('runs/monday')"
            raise UsageError(f"{function} takes runs, such as {example}, not a {type(one).__name__}")
        runs.append(one)
    return runs
