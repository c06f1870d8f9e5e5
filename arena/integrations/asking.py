"""Shared by all adapters: wait for a busy server, tell refusals from failures, name rewards and splits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Literal, TypeVar

import msgspec

from arena.errors import NotServed
from arena.runs.serve.views import Final, ServedTask, Step
from arena.task.corpus.split import TaskSplit

T = TypeVar("T")
_REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class RewardScheme(StrEnum):
    """A reward of the server that an adapter hands on; docs/evaluate/serve.md has both formulas."""

    DENSE = "dense"
    BOUNDED = "bounded"

    @property
    def field(self) -> str:
        """Return the name of this reward in answers of the server."""
        return "reward" if self is RewardScheme.DENSE else "bounded_reward"

    def of(self, answer: Step | Final | Mapping[str, Any]) -> float:
        """Return the reward of this scheme; `answer` may also be the `facts` of one."""
        return float(answer[self.field] if isinstance(answer, Mapping) else getattr(answer, self.field))


async def when_free(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call, and again each time that the server is busy and says when to try again.

    Raises:
        NotServed: any other error of the server.
        ArenaError: it cannot be reached.
    """
    while True:
        try:
            return await call()
        except NotServed as problem:
            if problem.retry_after_s is None:
                raise
            await asyncio.sleep(problem.retry_after_s)


def is_refusal(problem: NotServed) -> bool:
    """Return whether the model asked for what cannot be, such as an evaluation beyond its budget.

    Such an error is feedback to the model; any other is a failure of the harness, which must earn no reward.
    """
    return problem.status in _REFUSALS


def facts(answer: object) -> Any:
    """Return an answer of the server as plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(answer))


def tasks_by_split(tasks: Iterable[ServedTask]) -> dict[str, list[ServedTask]]:
    """Return the tasks of each task type, such as `hip2hip`, and of each suite, such as `hip2hip/moe`."""
    by_type: dict[str, list[ServedTask]] = {}
    by_suite: dict[str, list[ServedTask]] = {}
    for task in tasks:
        by_type.setdefault(task.task_type, []).append(task)
        by_suite.setdefault(task.task.rpartition("/")[0], []).append(task)
    return by_type | by_suite


def purpose(tasks: Iterable[ServedTask]) -> Literal["train", "test"]:
    """Return `train` where every task is for training, else `test`."""
    return "train" if all(task.split is TaskSplit.TRAIN for task in tasks) else "test"
