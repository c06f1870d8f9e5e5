"""`arena regrade`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.cli import run as run_command
from arena.cli.console import err, examples, out
from arena.cli.corpora import TasksDirs
from arena.cli.devices import ACCELERATOR, ADDRESS, DEVICES, EXECUTOR, Platform, chosen_devices
from arena.cli.options import chosen_options, takes_options
from arena.task.options import RUN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arena.integrations.published.sources import Found
    from arena.runs.runner import RunPlan
    from arena.task.definition import Task
    from arena.task.options import Options

EXAMPLES = examples(
    "arena regrade ~/kernelbench.com --as kernelbench.com --tasks-dir corpora/kernelbench_hard --devices all",
    "arena regrade ~/kernelbench.com --as kernelbench.com --tasks-dir corpora/kernelbench_hard --row 'codex*/*topk*/*'",
    "arena regrade ~/DLBlas/dlblas/kernels/kernelagent --as kernelbench --tasks-dir imported --limit 20",
    "arena regrade ~/CUDA-L1 --as cuda-l1 --tasks-dir imported --row 'cuda-l1.h100/*'",
    "arena regrade my_kernels --as folder --platform cpu --effort correctness",
)
_CORES_A_KERNEL = 2
"""so many kernels are compiled at once: an extension takes its compilers a minute"""
_FORM = (
    "Layout of the source: kernelbench.com or cuda-l1 (checkouts), kernelbench (a run folder), "
    "folder (AGENT/TASK/kernel.py)."
)


@takes_options(RUN)
def regrade(
    source: Annotated[Path, typer.Argument(help="Folder of published kernels.", exists=True, file_okay=False)],
    form: Annotated[str, typer.Option("--as", help=_FORM)],
    row: Annotated[list[str] | None, typer.Option(help="Only these rows: globs over agent/problem/attempt.")] = None,
    name: Annotated[str, typer.Option(help="Name of the run; its folder is RUNS-DIR/NAME.")] = "published",
    platform: Platform = "auto",
    tasks_dir: TasksDirs = None,
    devices: Annotated[str, DEVICES] = "",
    executor: Annotated[str, EXECUTOR] = "local",
    address: Annotated[str, ADDRESS] = "",
    accelerator: Annotated[str, ACCELERATOR] = "",
    runs_dir: Annotated[Path, typer.Option(help="Folder of the run folders.")] = run_command.RUNS,
    limit: Annotated[int | None, typer.Option(help="Judge at most so many kernels now.", min=1)] = None,
    *,
    given: dict[str, Any],
) -> None:
    """Judge kernels that others have published, and compare with what they claim. The same command resumes.

    A kernel is judged for the task whose `source` names its problem. The run folder gets survival.csv, a row for each
    kernel with its path, commit and hash, and survival.md with the counts. One file that cannot be judged fails alone.

    Exit code 0: every kernel that has a task has a verdict; 3: the harness failed in some.
    """
    from arena.integrations.published import survival
    from arena.integrations.published.sources import published
    from arena.processes.scratch import scratch
    from arena.runs.executors import executor as executor_called
    from arena.runs.records import write
    from arena.task.corpus.corpora import open_corpora

    where, folder = executor_called(executor, address, accelerator), runs_dir / name
    tasks = open_corpora(tasks_dir or ()).load_valid()
    found = published(source, form, tasks, row or ())
    kernels = [one.kernel for one in found]
    with scratch("published") as place:
        plan = _planned(found, Path(place), tasks, (name, platform), chosen_options(given, RUN))
        corpora = tuple(path.resolve() for path in tasks_dir or ())
        plan = replace(plan, config=replace(plan.config, corpora=corpora), limit=limit)
        without = len(kernels) - len(plan.selected)
        err.print(f"{len(plan.selected)} of {len(kernels)} kernels can be judged, {without} not", highlight=False)
        write(folder / survival.KERNELS, kernels)
        run_command.say_estimate(plan, folder)
        done = run_command.judged(plan, folder, chosen_devices(devices), where)
    rows = survival.write(done, kernels, folder)
    out.print(survival.page(done, kernels, rows), highlight=False, soft_wrap=True, markup=False)
    out.print(f"rows: {folder / survival.ROWS}; counts: {folder / survival.PAGE}", highlight=False, soft_wrap=True)
    run_command.require_verdicts(done, folder)


def _planned(
    found: Sequence[Found], place: Path, tasks: Mapping[str, Task], run: tuple[str, str], options: Options
) -> RunPlan:
    """Put the kernels where the agent `replay` finds them, and plan a run of exactly these trials."""
    from arena.agents import make_agent
    from arena.agents.base import AgentSpec
    from arena.errors import UsageError
    from arena.runs.config import RunConfig
    from arena.runs.runner import RunPlan
    from arena.runs.service.judge_pool import QUEUED_A_GPU

    keys = []
    for one in found:
        kernel = one.kernel
        if kernel.lack:
            continue
        task = tasks[kernel.task]
        file = place / kernel.agent / task.id / str(kernel.attempt) / task.task_type.kernel_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(one.text)
        keys.append((kernel.agent, task.id, kernel.attempt))
    if not keys:
        raise UsageError(f"none of {len(found)} kernels has a task, the first since {found[0].kernel.lack}")
    agents = tuple(dict.fromkeys(key[0] for key in keys))
    specs = tuple(AgentSpec(agent, "replay", folder=place / agent) for agent in agents)
    chosen = {key[1]: tasks[key[1]] for key in keys}
    config = RunConfig(
        name=run[0],
        tasks=tuple(chosen),
        agents=specs,
        platform=run[1],
        attempts=max(key[2] for key in keys),
        jobs=None if run[1] == "cpu" else max(QUEUED_A_GPU, len(os.sched_getaffinity(0)) // _CORES_A_KERNEL),
        path="arena regrade",
    )
    return RunPlan(config, chosen, {spec.name: make_agent(spec) for spec in specs}, options, tuple(keys))
