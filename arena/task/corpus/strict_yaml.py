"""YAML without surprises: positions kept, duplicate keys refused, `1e-2` a number and `no` a string."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import yaml

from arena.errors import FileError
from arena.package import PACKAGE
from arena.task.faults import STRICT, Place, fault_of
from arena.task.options import RUN, json_schema

SCHEMAS = PACKAGE / "task" / "schemas"
OPTIONS = "evaluation.json"
"""the schema that is derived from `Options`, and no file"""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml where PyYAML was built with it: a tenth of the time"""
_INTEGER = re.compile(r"[-+]?[0-9](_?[0-9])*")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True)
class Document:
    """A parsed file: plain data, and the line of every key and item.

    In a file that is a list, each item is a case, and errors call it by its id.
    """

    path: Path
    data: Any
    lines: dict[Place, int]

    def error(self, place: Sequence[str | int], problem: str) -> FileError:
        """An error at `place`, or at the nearest place above it whose line is known."""
        where = tuple(place)
        while where and where not in self.lines:
            where = where[:-1]
        return FileError(self.path, problem, line=self.lines.get(where, 1), key=self._named(tuple(place)))

    def _named(self, place: Place) -> str | None:
        if isinstance(self.data, list) and place and isinstance(place[0], int):
            place = (f"{self.path.stem}-{place[0] + 1:02d}", *place[1:])
        return _key(place)


def read(path: Path, schema: str) -> Document:
    """Read `path` and hold it against `arena/task/schemas/<schema>.json`; every fault is a `FileError`."""
    document = parse(path)
    validate(document, schema)
    return document


def utf8_text(path: Path) -> str:
    """Return a file's text; `FileError` where it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise FileError(path, f"cannot be read ({problem.strerror})") from None
    except UnicodeDecodeError as problem:
        at = problem.object[: problem.start].count(b"\n") + 1
        raise FileError(path, f"not UTF-8 ({problem.reason})", line=at) from None


def parse(path: Path) -> Document:
    """Parse one YAML document strictly."""
    text = utf8_text(path)
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else None
        raise FileError(path, f"not valid YAML: {problem.problem}", line=line) from None
    except yaml.reader.ReaderError as problem:
        at = text[: problem.position].count("\n") + 1
        raise FileError(path, f"not valid YAML: {problem.reason}", line=at) from None
    if node is None:
        raise FileError(path, "the file is empty", line=1)
    lines: dict[Place, int] = {}
    return Document(path, _plain(path, node, (), lines, set()), lines)


def validate(document: Document, schema: str) -> None:
    """Hold a document against a schema; the first fault, in file order, is raised."""
    found = fault(document.data, schema)
    if found is not None:
        raise document.error(*found)


def fault(data: Any, schema: str) -> tuple[Place, str] | None:
    """Return where plain data break `schemas/<schema>.json` first, and what is wrong; None where they do not."""
    return fault_of(data, _validator(schema))


@cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    return STRICT(_whole(f"{schema}.json"))


def _whole(name: str) -> Any:
    """Return a schema with everything that it refers to written out, which a validator follows faster than references.

    A schema refers to its own definitions, or names another, which lies beside it, by its file: `limits.json`.
    """
    if name == OPTIONS:
        return json_schema(RUN)
    content = msgspec.json.decode((SCHEMAS / name).read_bytes())
    del content["$schema"]  # where it stands, a part is held against a validator that is not ours
    return _written_out(content, content.pop("$defs", {}))


def _written_out(part: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_written_out(one, definitions) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        name = part["$ref"].removeprefix("#/$defs/")
        return _written_out(definitions[name], definitions) if name in definitions else _whole(name)
    return {key: _written_out(value, definitions) for key, value in part.items()}


def _plain(path: Path, node: yaml.Node, place: Place, lines: dict[Place, int], visited: set[int]) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(place, line)
    if id(node) in visited:
        raise FileError(path, "an alias is not allowed: write the value out", line=line, key=_key(place))
    visited.add(id(node))
    if node.tag not in _TAGS:
        raise FileError(path, f"tag {node.tag} is not allowed", line=line, key=_key(place))
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(path, item, (*place, index), lines, visited) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.MappingNode)
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise FileError(path, "a key must be a plain word", line=line)
        key = str(key_node.value)
        if key in result:
            first = lines[(*place, key)]
            raise FileError(path, f"key given twice, first on line {first}", line=line, key=key)
        lines[(*place, key)] = line
        result[key] = _plain(path, value_node, (*place, key), lines, visited)
    return result


def _key(place: Place) -> str | None:
    return ".".join(map(str, place)) or None


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    if node.style:  # not plain; libyaml says "" of what is plain
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


_PLAIN_TAGS = ("str", "int", "float", "bool", "null", "timestamp", "value", "seq", "map")
_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in _PLAIN_TAGS)
