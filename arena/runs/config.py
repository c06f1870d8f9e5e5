"""Run configurations: what a file says, what the command line overrides, and what then holds.

Precedence, strongest first: the command line, the file, the defaults of `RunConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from arena.agents.base import AgentSpec
from arena.agents.definition import listed, located
from arena.errors import FileError, UsageError
from arena.package import resource
from arena.platforms import known
from arena.task.corpus import strict_yaml

_DEFINITION_SUFFIX = ".yaml"
Option = bool | int | float | str | tuple[str, ...]


@dataclass(frozen=True)
class Overrides:
    """What the command line sets; None and () leave the file's word."""

    name: str | None = None
    platform: str | None = None
    tasks: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    attempts: int | None = None
    jobs: int | None = None
    corpora: tuple[Path, ...] = ()
    evaluation: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True)
class RunConfig:
    """What a run does, with nothing left open but which tasks the selectors match."""

    name: str
    tasks: tuple[str, ...]
    agents: tuple[AgentSpec, ...]
    platform: str = "auto"
    platforms: tuple[tuple[str, str], ...] = ()
    """patterns of task ids, each with its platform in place of `platform`; the first that matches counts"""
    attempts: int = 3
    """per task and agent; three is what AgentKernelArena's paper reports"""
    jobs: int | None = None
    """trials side by side; None: one for each judge"""
    evaluation: Mapping[str, Option] = field(default_factory=dict)
    corpora: tuple[Path, ...] = ()
    """folders of tasks; none: the shipped ones"""
    heldout: Path | None = None
    """folder with held-out cases that replace the committed ones, as `arena heldout sample` writes it"""
    path: str = ""
    text: str = ""


def find_config(name: str) -> Path:
    """Return the file of a run configuration.

    Args:
        name: a path, or the name of a shipped configuration, such as `quickstart`.

    Raises:
        UsageError: neither is there; the message lists the shipped configurations.
    """
    shipped = {path.stem: path for path in sorted(resource("configs").glob("*.yaml"))}
    path = shipped.get(name, Path(name)) if not Path(name).is_file() else Path(name)
    if not path.is_file():
        raise UsageError(f"{name}: no such file; shipped configurations are {', '.join(shipped)}")
    return path


def load_config(path: Path) -> RunConfig:
    """Read a run configuration; every fault is a `FileError` with its line."""
    document = strict_yaml.read(path, "run")
    data: dict[str, Any] = document.data
    agents = tuple(_agent(document, index) for index in range(len(data["agents"])))
    names = [agent.name for agent in agents]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise document.error(["agents", index], f"a second agent called {name}; give it a `name` of its own")
    platform: str | dict[str, str] = data.get("platform", "auto")
    return RunConfig(
        name=data.get("name", path.stem),
        tasks=tuple(data["tasks"]),
        agents=agents,
        platform=platform if isinstance(platform, str) else "auto",
        platforms=() if isinstance(platform, str) else tuple(platform.items()),
        attempts=data.get("attempts", RunConfig.attempts),
        jobs=data.get("jobs"),
        evaluation=_evaluation(data.get("evaluation", {})),
        corpora=tuple(
            folder
            for index, text in enumerate(data.get("corpora", ()))
            if (folder := _folder(document, ["corpora", index], text)) is not None
        ),
        heldout=_folder(document, ["heldout"], data.get("heldout")),
        path=str(path),
        text=path.read_text(encoding="utf-8"),
    )


def override(config: RunConfig, overrides: Overrides) -> RunConfig:
    """The configuration with the command line's word put above the file's."""
    changed = config
    if overrides.name is not None:
        changed = replace(changed, name=overrides.name)
    if overrides.platform is not None:
        changed = replace(changed, platform=known(overrides.platform), platforms=())
    if overrides.tasks:
        changed = replace(changed, tasks=overrides.tasks)
    if overrides.corpora:
        changed = replace(changed, corpora=overrides.corpora)
    if overrides.attempts is not None:
        changed = replace(changed, attempts=overrides.attempts)
    if overrides.jobs is not None:
        changed = replace(changed, jobs=overrides.jobs)
    if overrides.evaluation:
        changed = replace(changed, evaluation={**changed.evaluation, **overrides.evaluation})
    if overrides.agents:
        changed = replace(changed, agents=_chosen(config, overrides.agents))
    return changed


def _chosen(config: RunConfig, names: tuple[str, ...]) -> tuple[AgentSpec, ...]:
    here = {agent.name: agent for agent in config.agents}
    for name in names:
        if name not in here:
            raise FileError(config.path, f"no agent {name!r} in this configuration; it has {', '.join(here)}")
    return tuple(here[name] for name in names)


def _evaluation(data: Mapping[str, Any]) -> dict[str, Option]:
    """What the file says of the evaluation; a list becomes a tuple, since a configuration does not change."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def _agent(document: strict_yaml.Document, index: int) -> AgentSpec:
    item = document.data["agents"][index]
    kind, name = str(item["kind"]), item.get("name")
    if kind.endswith(_DEFINITION_SUFFIX):
        path = (document.path.parent / kind).resolve()
        if not path.is_file():
            raise document.error(["agents", index, "kind"], f"{path} is not a file")
        kind, name = str(path), name or path.stem
    command, beside = located(tuple(item.get("command", ())), document.path.parent)
    shown = listed(document, ["agents", index, "show"], item.get("show", ()))
    return AgentSpec(
        name=name or kind,
        kind=kind,
        folder=_folder(document, ["agents", index, "folder"], item.get("folder")),
        model=item.get("model", ""),
        command=command,
        show=shown,
        beside=beside,
        limits=item.get("limits", {}),
    )


def _folder(document: strict_yaml.Document, place: list[str | int], text: str | None) -> Path | None:
    """A folder named in a configuration, seen from where the configuration lies."""
    if text is None:
        return None
    folder = (document.path.parent / text).resolve()
    if not folder.is_dir():
        raise document.error(place, f"{folder} is not a folder")
    return folder
