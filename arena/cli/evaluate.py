"""`arena evaluate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.cli.console import err, examples, out, print_json
from arena.cli.corpora import TasksDirs
from arena.cli.devices import Platform, warn_before
from arena.cli.options import chosen_options, takes_options
from arena.results.effort import Effort
from arena.results.verdict import Stage, Status
from arena.task.options import EVALUATE

if TYPE_CHECKING:
    from rich.status import Status as Spinner

    from arena.api.result import Result
    from arena.judge.process.messages import Progress
    from arena.results.record import Evaluation
    from arena.task.definition import Task
    from arena.task.options import Options

EXAMPLES = examples(
    "arena evaluate rms_norm tasks/triton2triton/normalization/rms_norm/kernel.py",
    "arena evaluate hip2hip/modules/softmax my_kernel.hip --json",
    "arena evaluate hip2hip/modules/softmax my_kernel.hip --no-heldout --platform cuda",
    "arena evaluate hip2hip/modules/softmax my_kernel.hip --effort correctness",
    "arena evaluate rms_norm my_kernel.py --case heldout-03 --effort correctness   # one case, in seconds",
    "arena evaluate rms_norm my_kernel.py --like 'M=5 N=4097 dtype=bfloat16' --effort correctness",
    "arena evaluate rms_norm my_kernel.py --dump failing ; python failing/reproduce.py my_kernel.py",
    "arena evaluate rms_norm my_kernel.py --watch --effort correctness",
    "arena evaluate hip2hip/modules/softmax my_kernel.hip --targets gfx942,gfx90a --targets sm_90",
    "arena evaluate hip2hip/modules/softmax my_kernel.hip --targets gfx942 --execute",
)


@takes_options(EVALUATE)
def evaluate(
    task: Annotated[str, typer.Argument(help="Task id, its bare name, or a task folder.")],
    file: Annotated[Path, typer.Argument(help="The candidate: kernel.py or kernel.hip.")],
    platform: Platform = "auto",
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Status, speedup and the whole evaluation as JSON; see docs/evaluate/python.md."),
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Evaluate again whenever the file changes.")] = False,
    tasks_dir: TasksDirs = None,
    *,
    given: dict[str, Any],
) -> None:
    """Evaluate one candidate file: compile, correctness, performance, held-out cases.

    Exit code 0: every case is right, with a valid timing; 1: any other outcome; 3: no verdict. A case of --like is none
    of the task: 0 says that it is right, and nothing of the task. With --watch Ctrl-C ends, with the last exit code.
    """
    from arena.task.corpus.corpora import open_corpora

    found = open_corpora(tasks_dir or ()).find(task)
    if "like" not in given:
        given = {**given, "case": _cases(found, given.get("case", ()))}
    options = chosen_options(given, EVALUATE)
    judged = _watched(found, file, platform, options) if watch else [_evaluated(found, file, platform, options)]
    code = 0
    for result in judged:
        print_json(_as_json(result)) if as_json else _show(result, options)
        code = _exit_code(result)
    raise typer.Exit(code)


def _watched(task: Task, file: Path, platform: str, options: Options) -> Iterator[Result]:
    """Yield a result now and after every change of the file, from one judge, until Ctrl-C."""
    import arena
    from arena.api.candidate import require_candidate
    from arena.cli.watch import changes
    from arena.errors import InfrastructureError, UsageError

    require_candidate(file, task.task_type)
    _warn(platform, options)
    with suppress(KeyboardInterrupt), arena.Judge(platform) as judge:
        for _ in changes(file):
            err.print(f"{time.strftime('%H:%M:%S')} {file}", highlight=False, markup=False)
            try:
                with err.status("waiting for the judge") as status:
                    result = judge.evaluate(task, file, options=options, on_progress=_showing(status))
            except InfrastructureError as problem:
                err.print(f"no verdict: {problem}", highlight=False, markup=False)
                continue
            except UsageError:
                if file.is_file():
                    raise
                continue  # it is just being replaced
            yield result
            err.print("waiting for a change; Ctrl-C ends", highlight=False)


def _exit_code(result: Result) -> int:
    from arena.results.outcome import Outcome

    if result.evaluation.made_up:
        return 0 if result.stage_status is Status.PASSED else 1
    return 0 if result.solved else 3 if result.outcome is Outcome.NO_VERDICT else 1


def _cases(task: Task, named: Sequence[str]) -> tuple[str, ...]:
    """Return the cases to judge; beside held-out ones the smallest seen case, which every evaluation needs."""
    from arena.errors import UsageError
    from arena.task.definition import arguments

    known = [case.id for case in task.cases]
    for name in named:
        if name not in known:
            raise UsageError(f"--case {name}: {task.id} has no such case; it has {', '.join(known)}")
    if not named or any(case.id in named for case in task.seen):
        return tuple(named)
    smallest = min(task.seen, key=lambda case: arguments(task, case).num_bytes)
    err.print(f"{smallest.id} is judged too: a held-out case follows on seen ones", highlight=False)
    return (smallest.id, *named)


def _evaluated(task: Task, file: Path, platform: str, options: Options) -> Result:
    """Evaluate a file as the Python API does, and show what the judge is doing."""
    import arena

    _warn(platform, options)
    with err.status("waiting for the judge") as status:
        return arena.evaluate(task, file, options=options, platform=platform, on_progress=_showing(status))


def _warn(platform: str, options: Options) -> None:
    if options.effort is not Effort.CORRECTNESS:
        warn_before(platform)


def _showing(status: Spinner) -> Callable[[Progress], None]:
    """Return what shows the stage that an evaluation has reached."""

    def show_stage(progress: Progress) -> None:
        status.update(f"{progress.stage} {progress.done + 1}/{progress.total}")

    return show_stage


def _as_json(result: Result) -> dict[str, object]:
    """Return what counts, followed by the fields of the evaluation."""
    import msgspec

    overall = {name: getattr(result, name) for name in ("outcome", "solved", "stage_status", "speedup", "skipped")}
    return {**overall, **msgspec.to_builtins(result.evaluation)}


def _show(result: Result, options: Options) -> None:
    """The cases, what went wrong, for which GPUs it builds, and the overall result."""
    from arena.cli import render
    from arena.results.failures import failures
    from arena.results.messages import for_terminal

    evaluation = result.evaluation
    out.print(render.evaluation_table(result))
    warnings = render.compiler_warnings(evaluation)
    if warnings:
        out.print("compile: warnings:", markup=False)
    for line in warnings:
        out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    for line in failures(evaluation):
        out.print(for_terminal(line), markup=False, highlight=False, soft_wrap=True)
    for verdict in evaluation.verdicts:
        if verdict.status is not Status.PASSED:
            told = any(case.detail and verdict.detail.endswith(case.detail) for case in evaluation.cases)
            detail = "" if told or not verdict.detail else f": {for_terminal(verdict.detail)}"
            out.print(f"{verdict.stage}: {verdict.status}{detail}", markup=False, highlight=False, soft_wrap=True)
    if options.dump is not None:
        out.print(f"dump: {_dumped(evaluation, Path(options.dump))}", markup=False, soft_wrap=True)
    if evaluation.targets:
        out.print(render.targets_table(evaluation))
    out.print(f"platform {evaluation.environment.device.platform}, isolation {evaluation.environment.isolation}")
    out.print(result.summary, markup=False, highlight=False, soft_wrap=True)


def _dumped(evaluation: Evaluation, folder: Path) -> str:
    """Return where the script of a dumped call is, or why there is none."""
    if evaluation.dumped:
        return f"{evaluation.dumped}: {folder / 'reproduce.py'}"
    if evaluation.failure is not None and evaluation.failure.stage is Stage.COMPILE:
        return f"nothing was written, since the candidate was not called: {evaluation.status}"
    return "nothing was written, since no call failed; `--case ID` writes one that passes"
