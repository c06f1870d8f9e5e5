"""YAML without surprises: positions kept, duplicate keys refused, `1e-2` a number and `no` a string."""

from __future__ import annotations

import math
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

Place = tuple[str | int, ...]
SCHEMAS = PACKAGE / "task" / "schemas"

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
    faults = sorted(_validator(schema).iter_errors(data), key=lambda fault: list(map(str, fault.path)))
    if not faults:
        return None
    first = jsonschema.exceptions.best_match(faults)
    place = tuple(first.absolute_path)
    if first.validator == "additionalProperties" and isinstance(first.instance, dict):
        unknown = sorted(set(first.instance) - set(first.schema.get("properties", {})))
        known = ", ".join(sorted(first.schema.get("properties", {})))
        return (*place, unknown[0]), f"unknown key; expected one of: {known}"
    return place, _say(first)


def _say(fault: jsonschema.ValidationError) -> str:
    if fault.validator == "required":
        return fault.message.replace(" is a required property", " is missing")
    if fault.validator == "minItems" and isinstance(fault.instance, list):
        return f"{len(fault.instance)} items given, at least {fault.validator_value} expected"
    if fault.validator == "oneOf" and isinstance(fault.instance, dict):
        branches: Any = fault.validator_value
        names = [name for branch in branches for name in branch.get("required", ())]
        return f"exactly one of {', '.join(names)} expected"
    if fault.validator == "type" and fault.validator_value == "object" and isinstance(fault.schema, dict):
        keys = ", ".join(sorted(fault.schema.get("properties", {})))
        return f"{fault.instance!r} is not a mapping" + (f"; expected keys: {keys}" if keys else "")
    choices = [str(choice) for schema in _alternatives(fault) for choice in schema.get("enum", ())]
    if choices and isinstance(fault.schema, dict):
        other = fault.schema.get("description", "")
        return f"{fault.instance!r} is not one of {', '.join(choices)}" + (f", {other}" if other else "")
    return str(fault.message)


def _alternatives(fault: jsonschema.ValidationError) -> Sequence[Mapping[str, Any]]:
    """The schemas of which a text should have fulfilled one."""
    if isinstance(fault.parent, jsonschema.ValidationError) and fault.parent.validator == "anyOf":
        branches: Any = fault.parent.validator_value
        return tuple(branches)
    return (fault.schema,) if fault.validator == "enum" and isinstance(fault.schema, dict) else ()


def _is_integer(_: object, value: object) -> bool:
    """JSON Schema takes 1.0 for an integer; a size or a count is written without a point."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: object, value: object) -> bool:
    """Return whether it is a finite number; Python's `nan` and `inf` are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_STRICT: type[jsonschema.Draft202012Validator] = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    ),
)


@cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    return _STRICT(_whole(f"{schema}.json"))


def _whole(name: str) -> Any:
    """Return a schema with everything that it refers to written out, which a validator follows faster than references.

    A schema refers to its own definitions, or names another, which lies beside it, by its file: `limits.json`.
    """
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
