"""Models as agents, as data: `configs/models/*.yaml` and files of one's own, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from arena.agents.definition import Price
from arena.errors import FileError
from arena.extras import install_command
from arena.package import resource
from arena.results.session import Limits
from arena.task.corpus import strict_yaml

DEFINITIONS = resource("configs") / "models"
LIBRARY = "openai"
INSTALL = install_command("model")


@dataclass(frozen=True)
class ModelDefinition:
    """An endpoint, a model, and how often it is asked. `base_url` and `model` may be `$NAME`, a variable's value."""

    name: str
    about: str
    base_url: str
    path: Path
    model: str = ""
    api_key_env: str = ""
    """the variable that holds the key; empty: the endpoint wants none"""
    temperature: float | None = None
    """None, as for `max_tokens`: the endpoint's default"""
    max_tokens: int | None = None
    """tokens of one answer"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """further fields of each request, as the endpoint documents them"""
    samples: int = 1
    """conversations, independent of each other"""
    turns: int = 1
    """answers in each conversation; the model gets the feedback on one before the next"""
    parallel: int = 8
    """requests at the same time"""
    retries: int = 6
    """of one request, after rate limits, failures of the server and lost connections"""
    silence_s: float = 600.0
    """longest wait for the next piece of an answer"""
    price: Price | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class ModelTarget:
    """An endpoint as requests need it, with every variable filled in. `key` is empty where the endpoint wants none."""

    url: str
    model: str
    key: str


def target_of(definition: ModelDefinition, environ: Mapping[str, str]) -> ModelTarget:
    """Return the endpoint, the model and the key that a definition names."""
    key = environ.get(definition.api_key_env, "").strip() if definition.api_key_env else ""
    return ModelTarget(value(definition.base_url, environ), value(definition.model, environ), key)


def load_model(path: Path) -> ModelDefinition:
    """Read one definition; every fault is a `FileError` with its line."""
    document = strict_yaml.read(path, "model")
    data: dict[str, Any] = dict(document.data)
    problem = "" if data["base_url"].startswith("$") else url_problem(data["base_url"])
    if problem:
        raise document.error(["base_url"], problem)
    if "price" in data:
        data["price"] = Price(**data["price"])
    return ModelDefinition(**{**data, "limits": Limits(**data.get("limits", {})), "path": path})


def load_models(folder: Path = DEFINITIONS) -> dict[str, ModelDefinition]:
    """Return every definition in a folder, by name; a file named otherwise than its agent is an error."""
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        definition = load_model(path)
        if definition.name != path.stem:
            raise FileError(path, f"the agent is called {definition.name}: name the file {definition.name}.yaml")
        found[definition.name] = definition
    return found


def defines_model(path: Path) -> bool:
    """Return whether a definition's file is of a model, not of a program; raises `FileError` where it is no YAML."""
    data = strict_yaml.parse(path).data
    return isinstance(data, dict) and "base_url" in data


def value(text: str, environ: Mapping[str, str]) -> str:
    """Return a field's text, or the value of the variable that it names; empty where that is not set."""
    return environ.get(text[1:], "").strip() if text.startswith("$") else text


def url_problem(url: str) -> str:
    """Return what is wrong with the address of an endpoint, without repeating it; empty where nothing is."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return "expected an address such as http://127.0.0.1:8000/v1"
        credentials = parts.username is not None or parts.password is not None or bool(parts.query)
    except ValueError:
        return "expected an address such as http://127.0.0.1:8000/v1"
    return "a key does not belong into an address, which records repeat: use api_key_env" if credentials else ""


def library_version() -> str:
    """Return the installed version of the library that sends the requests; empty where there is none."""
    try:
        return version(LIBRARY)
    except PackageNotFoundError:
        return ""


def lacks(definition: ModelDefinition, environ: Mapping[str, str]) -> str:
    """Return what keeps a model from being asked from here, and what to do; empty where nothing does."""
    if not library_version():
        return f"the library {LIBRARY} is not installed: {INSTALL}"
    url = value(definition.base_url, environ)
    names = [(definition.base_url[1:], url)] if definition.base_url.startswith("$") else []
    if definition.model.startswith("$"):
        names.append((definition.model[1:], value(definition.model, environ)))
    if definition.api_key_env:
        names.append((definition.api_key_env, environ.get(definition.api_key_env, "").strip()))
    unset = [name for name, text in names if not text]
    if unset:
        return f"set {' and '.join(unset)}"
    problem = url_problem(url)
    return f"{definition.base_url}: {problem}" if problem else ""
