"""Agents by kind. Adding one is a module here and a line in the table."""

from __future__ import annotations

from collections.abc import Callable

from arena.agents.base import Agent
from arena.agents.builtin import Expert, Noop, Replay
from arena.errors import UsageError
from arena.runconfig import AgentSpec


def _replay(spec: AgentSpec) -> Agent:
    if spec.folder is None:
        raise UsageError(f"agent {spec.name}: kind `replay` needs `folder`, where its candidates are")
    return Replay(spec.name, spec.folder)


_KINDS: dict[str, tuple[Callable[[AgentSpec], Agent], str]] = {
    "noop": (lambda spec: Noop(spec.name), "hands in the starting kernel: calibrates the harness"),
    "expert": (lambda spec: Expert(spec.name), "hands in the task's expert file: the known ceiling"),
    "replay": (_replay, "hands in candidate files from `folder`: grades what another system produced"),
}


def kinds() -> dict[str, str]:
    """Every kind of agent, with a line about it."""
    return {name: about for name, (_, about) in _KINDS.items()}


def make_agent(spec: AgentSpec) -> Agent:
    """The agent that a run configuration asks for."""
    if spec.kind not in _KINDS:
        raise UsageError(f"agent {spec.name}: unknown kind {spec.kind!r}; expected one of: {', '.join(_KINDS)}")
    return _KINDS[spec.kind][0](spec)


__all__ = ["kinds", "make_agent"]
