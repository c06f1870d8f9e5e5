"""What `arena` exports: the names, what each documents, and the examples in their docstrings."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

import pytest

import arena
from arena.agents import base
from arena.api import client, evaluation, result, runs, tasks

NAMES = {
    *(
        "Agent",
        "ArenaError",
        "AsyncClient",
        "Client",
        "Comparison",
        "Judge",
        "Options",
        "Result",
        "Run",
        "Status",
        "Submission",
        "Task",
        "Workspace",
    ),
    *("compare", "evaluate", "list_tasks", "load_run", "load_task", "report", "run"),
}


def test_the_exported_names() -> None:
    assert {*arena.__all__} == NAMES and len(NAMES) <= 20
    assert all(getattr(arena, name).__module__.startswith("arena.") for name in NAMES)
    assert {*NAMES} <= {*dir(arena)}
    with pytest.raises(AttributeError, match="has no attribute 'evaluat'"):
        arena.evaluat  # noqa: B018


def test_functions_say_what_they_take_give_and_raise() -> None:
    functions = [getattr(arena, name) for name in NAMES if inspect.isfunction(getattr(arena, name))]
    assert len(functions) == 7
    for function in functions:
        text = inspect.getdoc(function) or ""
        assert "Args:" in text and "Returns:" in text, function
        for name in inspect.signature(function).parameters:
            assert f"{name}:" in text, f"{function.__name__} does not say what `{name}` is"


@pytest.mark.slow(but=["arena.api.client"])
@pytest.mark.parametrize("module", [tasks, evaluation, result, runs, base, client], ids=lambda module: module.__name__)
def test_the_examples_run(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0
