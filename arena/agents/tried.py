"""Versions of agents' programs that were tried, and default models: one file for all, `configs/tried`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from arena.agents.definition import Definition, load_definitions
from arena.package import resource
from arena.task.corpus import strict_yaml

FILE = resource("configs") / "tried" / "coding_agents.yaml"
_VERSION = "${VERSION}"
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class TriedAgent:
    """The version of a program that the tests ran, and the model that `model: default` means."""

    version: str
    model: str = ""


def tried_agents(path: Path = FILE) -> dict[str, TriedAgent]:
    """Read the file, by name of the agent's definition. Raises `FileError` where it is malformed."""
    agents: dict[str, dict[str, str]] = strict_yaml.read(path, "tried").data["agents"]
    return {name: TriedAgent(**facts) for name, facts in agents.items()}


def with_tried(definition: Definition, known: dict[str, TriedAgent] | None = None) -> Definition:
    """Return a definition whose `install` has `${VERSION}` with that filled in, and with its default model."""
    facts = (tried_agents() if known is None else known).get(definition.name)
    if facts is None or _VERSION not in definition.install:
        return definition
    install = definition.install.replace(_VERSION, facts.version)
    return replace(definition, tried=facts.version, install=install, default_model=facts.model)


def shipped_definitions() -> dict[str, Definition]:
    """Return the definitions in `configs/agents`, by name, with their versions."""
    known = tried_agents()
    return {name: with_tried(definition, known) for name, definition in load_definitions().items()}


def newer_than_tried(installed: str, tried: str) -> bool:
    """Return whether the version that a program prints is above the one that was tried; false where either is none."""
    one, other = _numbers(installed), _numbers(tried)
    return bool(one and other) and one > other


def _numbers(version: str) -> tuple[int, ...]:
    found = _NUMBERS.search(version)
    return tuple(map(int, found[0].split("."))) if found else ()
