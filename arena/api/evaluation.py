"""Evaluate single candidates, without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from arena.api.arguments import device_number
from arena.api.candidate import Candidate, require_candidate, write_candidate
from arena.api.result import Result, result_of
from arena.api.tasks import Folders, load_task
from arena.errors import UsageError
from arena.judge.process.client import JudgeClient
from arena.judge.process.messages import Options, Progress, options_of
from arena.platforms import known
from arena.processes.scratch import scratch
from arena.results.environment import Environment
from arena.task.corpus.strict_yaml import fault
from arena.task.definition import Task

_NAMES = {"timeout_s": "call_timeout_s"}
"""options that a run configuration calls otherwise"""


class EvaluationOptions(TypedDict, total=False):
    """Keyword arguments of an evaluation."""

    effort: str
    heldout: bool
    seeds: int
    max_work: float | None
    timeout_s: float
    targets: Sequence[str]
    execute: bool
    profile: bool
    on_progress: Callable[[Progress], None]


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

    def evaluate(self, task: str | Task, candidate: Candidate, **options: Unpack[EvaluationOptions]) -> Result:
        """Evaluate one candidate: compile, correctness, performance, held-out cases.

        Args:
            task: a task, its id, or a bare name that only one task has.
            candidate: a path, or the source as text or bytes. A `str` without a line break is a path.
            **options: `effort` (default `full`): `correctness` times nothing, `screen` times seen cases to 5 %.
                `heldout` (True; False for `screen`): also evaluate held-out cases. `seeds` (3): secret draws per case.
                `max_work`: skip cases whose operations plus bytes exceed it, but keep the two smallest of each split
                (default: no limit, 3e6 on the CPU platform). `timeout_s` (60): seconds per call. `targets`:
                architectures to cross-compile for, such as `gfx942`. `execute` (False): also execute the machine code
                for gfx942 or gfx950 on the CPU. `profile` (False): also say where the time goes.
                `on_progress`: called at every stage.

        Returns:
            The result; a candidate that fails is a result, not an exception.

        Raises:
            UsageError: no such task, file or option, or a value that a run configuration refuses.
            InfrastructureError: the harness or the device failed, so there is no verdict.
        """
        found = task if isinstance(task, Task) else load_task(task, corpora=self._corpora)
        on_progress = options.get("on_progress") or (lambda progress: None)
        checked = _options(options)
        with scratch("candidate") as folder:
            path = write_candidate(candidate, found.task_type, Path(folder))
            evaluation = self._client.evaluate(found.path, path, checked, on_progress)
        return result_of(evaluation, found, heldout=checked.heldout)

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
    **options: Unpack[EvaluationOptions],
) -> Result:
    """Evaluate one candidate with a judge of its own. For several candidates, keep a `Judge`.

    Args:
        task: a task, its id, or a bare name that only one task has.
        candidate: a path, or the source as text or bytes.
        platform: `cpu`, `cuda`, `rocm`, or `auto` for the best one on this machine.
        device: number of the GPU; None: the first.
        corpora: folders of tasks in place of the shipped ones.
        **options: as for `Judge.evaluate`.

    Returns:
        The result; a candidate that fails is a result, not an exception.

    Raises:
        UsageError: no such task, file, platform or option, or a value that a run configuration refuses.
        InfrastructureError: the harness or the device failed, so there is no verdict.

    Examples:
        >>> import arena
        >>> kernel = arena.load_task("rms_norm").baseline_kernel
        >>> result = arena.evaluate("rms_norm", kernel, platform="cpu", max_work=1e4)
        >>> result.solved
        True
    """
    found = task if isinstance(task, Task) else load_task(task, corpora=corpora)
    _options(options)  # raises before a judge is started
    require_candidate(candidate, found.task_type)
    with Judge(platform, device=device) as judge:
        return judge.evaluate(found, candidate, **options)


def _options(given: Mapping[str, Any]) -> Options:
    """Return what a judge is asked for; raises `UsageError` where a run configuration would be refused."""
    allowed = sorted(EvaluationOptions.__annotations__)
    for name in given:
        if name not in allowed:
            raise UsageError(f"unknown option `{name}`; expected one of: {', '.join(allowed)}")
    options: dict[str, Any] = {
        _NAMES.get(name, name): _plain(value) for name, value in given.items() if name != "on_progress"
    }
    if options.get("max_work", 0) is None:
        del options["max_work"]
    profile = options.pop("profile", False)
    if not isinstance(profile, bool):
        raise UsageError(f"option `profile`: {profile!r} is not of type 'boolean'")
    problem = fault(options, "evaluation")
    if problem is not None:
        place, text = problem
        given_as = {inner: outer for outer, inner in _NAMES.items()}
        raise UsageError(f"option `{given_as.get(str(place[0]), place[0])}`: {text}")
    targets = tuple(options.pop("targets", ()))
    return options_of({**options, "targets": targets, "profile": profile})


def _plain(value: object) -> object:
    """Return a value as a file would hold it: any sequence but text as a list."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value
