"""Measure how well AI coding agents optimise GPU kernels, and whether their kernels work on unseen shapes.

The names below are the public API. Each is imported when it is first used: importing `arena` itself costs nothing.
"""

from importlib import import_module

# `python -m arena` imports this before it can leave the current folder: nothing here may load another module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from arena.agents.base import Agent, Submission, Workspace
    from arena.api.client import AsyncClient, Client
    from arena.api.evaluation import Judge, evaluate
    from arena.api.result import Result
    from arena.api.runs import Run, compare, load_run, report, run
    from arena.api.tasks import list_tasks, load_task
    from arena.errors import ArenaError
    from arena.reports.compare import Comparison
    from arena.results.verdict import Status
    from arena.task.definition import Task
    from arena.task.options import Options

__version__ = "0.2.0"
_HOMES = {
    "Agent": "agents.base",
    "ArenaError": "errors",
    "AsyncClient": "api.client",
    "Client": "api.client",
    "Comparison": "reports.compare",
    "Judge": "api.evaluation",
    "Result": "api.result",
    "Options": "task.options",
    "Run": "api.runs",
    "Status": "results.verdict",
    "Submission": "agents.base",
    "Task": "task.definition",
    "Workspace": "agents.base",
    "compare": "api.runs",
    "evaluate": "api.evaluation",
    "list_tasks": "api.tasks",
    "load_run": "api.runs",
    "load_task": "api.tasks",
    "report": "api.runs",
    "run": "api.runs",
}
__all__ = [
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
    "compare",
    "evaluate",
    "list_tasks",
    "load_run",
    "load_task",
    "report",
    "run",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'arena' has no attribute {name!r}")
    value = getattr(import_module(f"arena.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
