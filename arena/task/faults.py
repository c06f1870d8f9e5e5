"""What is wrong with plain data, by a JSON schema, in words that name the value and what was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema

Place = tuple[str | int, ...]


def fault_of(data: Any, schema: jsonschema.Draft202012Validator | Mapping[str, Any]) -> tuple[Place, str] | None:
    """Return where plain data break a schema first, and what is wrong; None where they do not."""
    validator = STRICT(schema) if isinstance(schema, Mapping) else schema
    faults = sorted(validator.iter_errors(data), key=lambda fault: list(map(str, fault.path)))
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


STRICT: type[jsonschema.Draft202012Validator] = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    ),
)
