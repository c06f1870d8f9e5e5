"""Agents by kind: the built-in ones, definitions in `configs/agents` and `configs/models`, and those of other packages.

In: an `AgentSpec` of a run configuration. Out: an `Agent`, which hands in a kernel for a task and writes a transcript.
`box/` confines an agent's process, `parsers/` reads what each command-line agent prints. Nothing here judges: an agent
reaches the judge by a socket (`workspace_server.py`). A new agent needs a definition and a parser, no code elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from arena.agents.base import Agent, AgentSpec
from arena.agents.builtin import Expert, Noop, Replay
from arena.agents.chat.agent import ModelAgent
from arena.agents.chat.definition import ModelDefinition, defines_model, load_model, load_models
from arena.agents.cli_agent import CliAgent
from arena.agents.definition import Definition, limited, load_definition
from arena.agents.tried import shipped_definitions, with_tried
from arena.errors import UsageError

PLUG_INS = "unseen_arena.agents"
_DEFAULT = "default"


def _replay(spec: AgentSpec) -> Agent:
    if spec.folder is None:
        raise UsageError(f"agent {spec.name}: kind `replay` needs `folder`, where its candidates are")
    return Replay(spec.name, spec.folder)


_KINDS: dict[str, tuple[Callable[[AgentSpec], Agent], str]] = {
    "noop": (lambda spec: Noop(spec.name), "hands in the baseline kernel: calibrates the harness"),
    "expert": (lambda spec: Expert(spec.name), "hands in the task's expert file: the known ceiling"),
    "replay": (_replay, "hands in candidate files from `folder`: grades what another system produced"),
}


def kinds() -> dict[str, str]:
    """Return every kind of agent in code, built-in or from a plug-in, with a line about it."""
    plugged_in = {name: f"plug-in {entry.value}" for name, entry in plug_ins().items()}
    return {name: about for name, (_, about) in _KINDS.items()} | plugged_in


def plug_ins() -> dict[str, EntryPoint]:
    """Return the agents that installed packages offer, by kind: entry points of the group `unseen_arena.agents`."""
    return {entry.name: entry for entry in entry_points(group=PLUG_INS)}


def make_agent(spec: AgentSpec) -> Agent:
    """Make the agent that a run configuration asks for."""
    if spec.kind in _KINDS:
        return _KINDS[spec.kind][0](spec)
    if spec.kind in plug_ins():
        return _plugged_in(spec)
    definition = _definition(spec)
    if isinstance(definition, ModelDefinition):
        return ModelAgent(spec.name, definition, spec.model, spec.limits)
    changed = limited(replace(definition, show=(*definition.show, *spec.show)), spec.limits)
    if spec.command:
        changed = replace(changed, command=spec.command, beside=spec.beside)
    model = changed.default_model if spec.model == _DEFAULT and changed.default_model else spec.model
    return CliAgent(spec.name, changed, model)


def _plugged_in(spec: AgentSpec) -> Agent:
    entry = plug_ins()[spec.kind]
    try:
        agent: Agent = entry.load()(spec)
    except Exception as problem:
        raise UsageError(f"agent {spec.name}: the plug-in {entry.value} failed: {problem}") from problem
    return agent


def _definition(spec: AgentSpec) -> Definition | ModelDefinition:
    if Path(spec.kind).is_absolute():
        path = Path(spec.kind)
        return load_model(path) if defines_model(path) else with_tried(load_definition(path))
    known: dict[str, Definition | ModelDefinition] = {**shipped_definitions(), **load_models()}
    if spec.kind not in known:
        names = ", ".join((*_KINDS, *plug_ins(), *known))
        raise UsageError(
            f"agent {spec.name}: unknown kind {spec.kind!r}; expected a definition's file, or one of: {names}"
        )
    return known[spec.kind]


__all__ = ["kinds", "make_agent"]
