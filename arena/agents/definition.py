"""Coding agents as data: `configs/agents/*.yaml`, read strictly. Only a format of events needs code, a parser."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from arena.errors import FileError, UsageError
from arena.package import resource
from arena.results.session import Limits
from arena.task.corpus import strict_yaml

DEFINITIONS = resource("configs") / "agents"
FILLED_IN = ("WORKSPACE", "HOME", "TOOLS", "PROMPT", "MODEL")
"""What `${…}` may name beside the variables that a definition passes on."""
_NAME_CHARACTERS = 256
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class PromptBy(StrEnum):
    """How an agent's program gets its prompt."""

    STDIN = "stdin"
    ARGUMENT = "argument"
    """in the place of `${PROMPT}`, else as the last argument"""
    FILE = "file"
    """it is told nothing: the prompt is in TASK.md"""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens, for agents that report tokens but not what they cost."""

    input: float
    output: float
    cached: float = 0.0


@dataclass(frozen=True)
class Definition:
    """An agent's program: how it is started, what it needs, what it reaches, what it may use up."""

    name: str
    about: str
    command: tuple[str, ...]
    prompt: PromptBy
    events: str
    """the format in which it reports what it does, on its standard output: a name in `arena.agents.parsers`"""
    path: Path
    install: str = ""
    """the command that installs it"""
    tried: str = ""
    """the version that was tried"""
    default_model: str = ""
    """the one that a run means by `model: default`; empty: the program knows what that is"""
    model: tuple[str, ...] = ()
    """arguments that choose a model, with `${MODEL}` in them; left out where the run names none"""
    version: tuple[str, ...] = ()
    """the command that prints its version"""
    environment: Mapping[str, str] = field(default_factory=dict)
    passes: tuple[str, ...] = ()
    """variables taken over from the caller's environment where they are set; their values are no secrets"""
    credentials: tuple[str, ...] = ()
    """variables taken over likewise whose values are secrets: they appear in no record, log or page"""
    network: tuple[str, ...] = ()
    """what it may reach: `host:port`, or `$NAME`, a variable that holds a URL; nothing else"""
    files: Mapping[str, str] = field(default_factory=dict)
    """files put into its home before it starts, by path in it"""
    show: tuple[Path, ...] = ()
    """further folders and files that it can read"""
    beside: tuple[Path, ...] = ()
    """where the files that `command` names lie: their other files can be read too, their subfolders cannot"""
    device: bool = True
    """whether it may use the GPU itself, not only through `./evaluate`"""
    price: Price | None = None
    limits: Limits = field(default_factory=Limits)


def load_definition(path: Path) -> Definition:
    """Read one definition; every fault is a `FileError` with its line."""
    document = strict_yaml.read(path, "agent")
    data: dict[str, Any] = document.data
    _check(document)
    shown = listed(document, ["show"], data.get("show", ()))
    command, beside = located(tuple(data["command"]), path.parent)
    sequences = ("model", "version", "passes", "credentials", "network")
    return Definition(
        name=data["name"],
        about=data["about"],
        prompt=PromptBy(data["prompt"]),
        events=data["events"],
        path=path,
        install=data.get("install", ""),
        tried=data.get("tried", ""),
        default_model="",
        environment=data.get("environment", {}),
        files=data.get("files", {}),
        command=command,
        show=shown,
        beside=beside,
        device=data.get("device", True),
        price=Price(**data["price"]) if "price" in data else None,
        limits=Limits(**data.get("limits", {})),
        **{key: tuple(data.get(key, ())) for key in sequences},
    )


def load_definitions(folder: Path = DEFINITIONS) -> dict[str, Definition]:
    """Every definition in a folder, by name; a file named otherwise than its agent is an error."""
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        definition = load_definition(path)
        if definition.name != path.stem:
            raise FileError(path, f"the agent is called {definition.name}: name the file {definition.name}.yaml")
        found[definition.name] = definition
    return found


def located(command: tuple[str, ...], folder: Path) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Return a command with the files of `folder` that it names by their full paths, and where these lie.

    Its program is a file there where it is written with a slash; every other argument where there is such a file.
    """
    found, show = [], []
    for index, text in enumerate(command):
        place = _place(text, folder, program=index == 0)
        found.append(text if place is None else str(place))
        show += [] if place is None else [with_neighbours(place)]
    return tuple(found), tuple(dict.fromkeys(show))


def _place(text: str, folder: Path, *, program: bool) -> Path | None:
    """Return the file in `folder` that an argument names; None where it names none."""
    if not 0 < len(text) < _NAME_CHARACTERS or "${" in text or text.startswith("/"):
        return None
    place = Path(os.path.abspath(folder / text))  # noqa: PTH100 - a link is called by its own name
    return place if ("/" in text if program else place.is_file()) else None


def with_neighbours(file: Path) -> Path:
    """Return the folder of a file; the file alone where that is a home folder, which is not shown for its sake."""
    return file if file.parent in (Path.home(), Path("/")) else file.parent


def listed(document: strict_yaml.Document, place: list[str | int], items: Sequence[str]) -> tuple[Path, ...]:
    """Return the paths of a list in a file, seen from where that lies. Raises `FileError` where one is missing."""
    paths = [(document.path.parent / item).expanduser().resolve() for item in items]
    for index, path in enumerate(paths):
        if not path.exists():
            raise document.error([*place, index], f"{path} does not exist")
    return tuple(paths)


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `${NAME}` of `values` replaced; every other dollar sign stays, for shells and the like."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def limited(definition: Definition, limits: Mapping[str, Any]) -> Definition:
    """The definition with some limits replaced, as a run configuration asks for it."""
    return replace(definition, limits=replace(definition.limits, **limits))


def endpoint(entry: str, environment: Mapping[str, str]) -> str:
    """`host:port` that an item of `network` stands for; empty where it names a variable that is not set."""
    from urllib.parse import urlsplit

    if not entry.startswith("$"):
        return entry
    url = environment.get(entry[1:], "")
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.hostname is None:
        raise UsageError(f"{entry[1:]}={url} is not a URL such as https://api.example.org")
    return f"{parts.hostname}:{parts.port or {'http': 80}.get(parts.scheme, 443)}"


def _check(document: strict_yaml.Document) -> None:
    """What the schema cannot say: variables that nothing fills in, endpoints without a port."""
    data = document.data
    known = {*FILLED_IN, *data.get("passes", ()), *data.get("credentials", ())}
    for key in ("command", "model"):
        for index, text in enumerate(data.get(key, ())):
            _check_names(document, [key, index], text, known)
    for key in ("environment", "files"):
        for name, text in data.get(key, {}).items():
            _check_names(document, [key, name], text, known)
    for index, entry in enumerate(data.get("network", ())):
        if entry.startswith("$"):
            if entry[1:] not in known:
                raise document.error(["network", index], f"{entry[1:]} must also be listed in `passes`")
        elif not entry.rpartition(":")[2].isdigit():
            raise document.error(["network", index], f"{entry!r} has no port: write host:443")


def _check_names(document: strict_yaml.Document, place: list[str | int], text: str, known: set[str]) -> None:
    for name in _PLACEHOLDER.findall(text):
        if name not in known:
            raise document.error(place, f"nothing sets {name}; known are {', '.join(sorted(known))}")
