"""Evaluate single candidates, without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from arena.api.arguments import device_number
from arena.api.candidate import Candidate, require_candidate, write_candidate
from arena.api.result import Result, result_of
from arena.api.tasks import Folders, load_task
from arena.errors import UsageError
from arena.judge.process.client import JudgeClient
from arena.judge.process.messages import Progress
from arena.judge.selection import with_made_up_case
from arena.platforms import known
from arena.processes.scratch import scratch
from arena.results.environment import Environment
from arena.task.definition import Task
from arena.task.options import EVALUATE, Options, options_of


class Judge:
    r"""A judge that stays warm between evaluations: the first takes seconds to start, the next ones do not.

    Args:
        platform: `cpu`, `cuda`, `rocm`, or `auto` for the best one on this machine.
        device: number of the GPU; None: the first.
        corpora: folders of tasks in place of the shipped ones.

    Raises:
        UsageError: there is no platform of this name, or `device` is no number.
        JudgeUnavailable: on first use, where the platform is missing on this machine.

    Examples:
        >>> import arena
        >>> with arena.Judge("cpu") as judge:
        ...     first = judge.evaluate("rms_norm", "x = 1\n", heldout=False)
        ...     second = judge.evaluate("rms_norm", b"x = 2\n", heldout=False)
        >>> first.stage_status == second.stage_status == "load_error"
        True
    """

    def __init__(self, platform: str = "auto", *, device: int | None = None, corpora: Folders = ()) -> None:
        self._client = JudgeClient(known(platform), device_number(device))
        self._corpora = corpora

    @property
    def environment(self) -> Environment:
        """Device, versions and isolation level; waits until the judge has started."""
        return self._client.environment

    def evaluate(
        self,
        task: str | Task,
        candidate: Candidate,
        *,
        options: Options | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        **named: Any,
    ) -> Result:
        """Evaluate one candidate: compile, correctness, performance, held-out cases.

        Args:
            task: a task, its id, or a bare name that only one task has.
            candidate: a path, or the source as text or bytes. A `str` without a line break is a path.
            options: how thoroughly; see `arena.Options`.
            on_progress: called at every stage.
            **named: options by name, in place of `options`: `effort="screen"`, `seeds=5`, `targets=["gfx942"]`.

        Returns:
            The result; a candidate that fails is a result, not an exception.

        Raises:
            UsageError: no such task, file or option, or a value out of bounds.
            InfrastructureError: the harness or the device failed, so there is no verdict.
        """
        found = task if isinstance(task, Task) else load_task(task, corpora=self._corpora)
        checked = _options(options, named)
        with_made_up_case(found, checked)  # raises before a judge is asked
        with scratch("candidate") as folder:
            path = write_candidate(candidate, found.task_type, Path(folder))
            try:
                evaluation = self._client.evaluate(found.path, path, checked, on_progress or _ignored)
            except KeyboardInterrupt:
                self._client.kill()
                raise
            finally:
                if checked.dump is not None:
                    with suppress(OSError):  # there are files in it
                        Path(checked.dump).rmdir()
        return result_of(evaluation, found, heldout=checked.heldout, named=checked.case)

    def close(self) -> None:
        """Stop the judge's processes."""
        self._client.close()

    def __enter__(self) -> Judge:
        """Return the judge; it starts in the background."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the judge's processes."""
        self.close()


def evaluate(
    task: str | Task,
    candidate: Candidate,
    *,
    platform: str = "auto",
    device: int | None = None,
    corpora: Folders = (),
    options: Options | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **named: Any,
) -> Result:
    """Evaluate one candidate with a judge of its own. For several candidates, keep a `Judge`.

    Args:
        task: a task, its id, or a bare name that only one task has.
        candidate: a path, or the source as text or bytes.
        platform: `cpu`, `cuda`, `rocm`, or `auto` for the best one on this machine.
        device: number of the GPU; None: the first.
        corpora: folders of tasks in place of the shipped ones.
        options: how thoroughly; see `arena.Options`.
        on_progress: called at every stage.
        **named: options by name, in place of `options`: `effort="screen"`, `seeds=5`, `targets=["gfx942"]`.

    Returns:
        The result; a candidate that fails is a result, not an exception.

    Raises:
        UsageError: no such task, file, platform or option, or a value out of bounds.
        InfrastructureError: the harness or the device failed, so there is no verdict.

    Examples:
        >>> import arena
        >>> kernel = arena.load_task("rms_norm").baseline_kernel
        >>> result = arena.evaluate("rms_norm", kernel, platform="cpu", max_work=1e4)
        >>> result.solved
        True
    """
    found = task if isinstance(task, Task) else load_task(task, corpora=corpora)
    checked = _options(options, named)  # raises before a judge is started
    with_made_up_case(found, checked)
    require_candidate(candidate, found.task_type)
    with Judge(platform, device=device) as judge:
        return judge.evaluate(found, candidate, options=checked, on_progress=on_progress)


def _with_folder(options: Options) -> Options:
    """Return options whose folder for a dump exists and is absolute; raises `UsageError` where it cannot be made.

    It exists before the judge hides it from the candidate. One that stays empty is removed.
    """
    if options.dump is None:
        return options
    folder = Path(options.dump).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"dump: {folder} is no folder to write to: {problem.strerror}") from None
    return structs.replace(options, dump=str(folder))


def _options(options: Options | None, named: Mapping[str, Any]) -> Options:
    """Return what a judge is asked for; `options` are checked as named ones are."""
    if options is None:
        return _with_folder(options_of(named, EVALUATE))
    if named:
        raise UsageError(f"give `options` or {', '.join(f'`{name}`' for name in named)}, not both")
    return _with_folder(options_of(structs.asdict(options), EVALUATE))


def _ignored(progress: Progress) -> None:
    """Show nothing."""
