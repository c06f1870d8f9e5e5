"""Evaluate single candidates, without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypedDict, Unpack

from arena.api.result import Result
from arena.api.tasks import Folders, load_task
from arena.errors import UsageError
from arena.judge.client import JudgeClient
from arena.judge.messages import Options, Progress
from arena.model.environment import Environment
from arena.model.task import Task
from arena.scratch import scratch

Candidate = str | bytes | PathLike[str]
_SUFFIXES = (".py", ".hip")


class EvaluationOptions(TypedDict, total=False):
    """Keyword arguments of an evaluation."""

    heldout: bool
    seeds: int
    max_work: float | None
    timeout_s: float
    targets: Sequence[str]
    profile: bool
    on_progress: Callable[[Progress], None]


class Judge:
    r"""A judge that stays warm between evaluations: the first takes seconds to start, the next ones do not.

    Args:
        platform: `cpu`, `cuda`, `rocm`, or `auto` for the best one on this machine.
        device: number of the GPU; None: the first.
        corpora: folders of tasks in place of the shipped ones.

    Raises:
        JudgeUnavailable: on first use, where the platform is missing.

    Examples:
        >>> import arena
        >>> with arena.Judge("cpu") as judge:
        ...     first = judge.evaluate("rms_norm", "x = 1\n", heldout=False)
        ...     second = judge.evaluate("rms_norm", b"x = 2\n", heldout=False)
        >>> first.status == second.status == "load_error"
        True
    """

    def __init__(self, platform: str = "auto", *, device: int | None = None, corpora: Folders = ()) -> None:
        self._client = JudgeClient(platform, device)
        self._corpora = corpora

    @property
    def environment(self) -> Environment:
        """Device, versions and isolation level; waits until the judge has started."""
        return self._client.environment

    def evaluate(self, task: str | Task, candidate: Candidate, **options: Unpack[EvaluationOptions]) -> Result:
        """Evaluate one candidate: compile, correctness, performance, held-out cases.

        Args:
            task: a task, its id, or a bare name that only one task has.
            candidate: a path, or the source as text or bytes. A `str` without a line break that ends in `.py` or
                `.hip` is a path.
            **options: `heldout` (default True): also evaluate held-out cases. `seeds` (3): secret draws per case.
                `max_work`: skip cases whose operations plus bytes exceed it (default: no limit, 3e6 on the CPU
                platform). `timeout_s` (60): seconds per call. `targets`: architectures to cross-compile for, such as
                `gfx942`. `profile` (False): also say where the time goes. `on_progress`: called at every stage.

        Returns:
            The result; a candidate that fails is a result, not an exception.

        Raises:
            UsageError: no such task or file.
            InfrastructureError: the harness or the device failed, so there is no verdict.
        """
        found = task if isinstance(task, Task) else load_task(task, corpora=self._corpora)
        on_progress = options.get("on_progress") or (lambda progress: None)
        with scratch("candidate") as folder:
            path = _written(candidate, Path(folder) / found.task_type.kernel_file)
            evaluation = self._client.evaluate(found.path, path, _options(options), on_progress)
        return Result(evaluation)

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
        UsageError: no such task or file.
        InfrastructureError: the harness or the device failed, so there is no verdict.

    Examples:
        >>> import arena
        >>> kernel = arena.load_task("rms_norm").baseline_kernel
        >>> result = arena.evaluate("rms_norm", kernel, platform="cpu", max_work=1e4)
        >>> result.passed
        True
    """
    found = task if isinstance(task, Task) else load_task(task, corpora=corpora)
    _require_file(candidate)
    with Judge(platform, device=device) as judge:
        return judge.evaluate(found, candidate, **options)


def _options(given: EvaluationOptions) -> Options:
    return Options(
        heldout=given.get("heldout", True),
        seeds=given.get("seeds", Options().seeds),
        max_work=given.get("max_work"),
        call_timeout_s=given.get("timeout_s", Options().call_timeout_s),
        targets=tuple(given.get("targets", ())),
        profile=given.get("profile", False),
    )


def _require_file(candidate: Candidate) -> None:
    path = _path(candidate)
    if path is not None and not path.is_file():
        raise UsageError(f"{path}: no such file")


def _path(candidate: Candidate) -> Path | None:
    """Return the path that a candidate is; None for text and bytes."""
    if isinstance(candidate, bytes):
        return None
    if isinstance(candidate, str) and ("\n" in candidate or not candidate.endswith(_SUFFIXES)):
        return None
    return Path(candidate)


def _written(candidate: Candidate, place: Path) -> Path:
    """Return the candidate's file; text and bytes are written to `place` first."""
    _require_file(candidate)
    path = _path(candidate)
    if path is not None:
        return path
    assert isinstance(candidate, str | bytes)
    place.write_bytes(candidate.encode() if isinstance(candidate, str) else candidate)
    return place
