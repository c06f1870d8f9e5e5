"""Options of an evaluation, specified once: name, type, bounds, default, text, and where each can be set.

Command lines, the schema of run files, the Python API, the server and the table in docs/evaluate/configuration.md are
derived from `Options`. A new option is a field here and the code that uses it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from arena.errors import UsageError
from arena.results.effort import Effort

EVALUATE, RUN, SERVE = "arena evaluate", "arena run", "arena serve"
Architecture = Literal[
    "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201",
    "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120",
]  # fmt: skip
"""the GPUs that can be compiled for; `platforms/toolchains/targets.py` has the facts of each"""
CPU_MAX_WORK = 3e6
EXECUTED = ("gfx942", "gfx950")
"""the targets whose machine code can be executed on the CPU"""


@dataclass(frozen=True)
class Described:
    """What is said of an option, and the commands that take it."""

    text: str
    commands: tuple[str, ...] = (EVALUATE, RUN, SERVE)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How thoroughly a candidate is evaluated. Times in seconds, sizes in bytes."""

    heldout: Annotated[
        bool, Described("also evaluate the held-out cases; `screen` leaves them out", (EVALUATE, RUN))
    ] = True
    effort: Annotated[
        Effort, Described("`correctness`: time nothing; `screen`: time seen cases to 5 %; `full`: time every case")
    ] = Effort.FULL
    seeds: Annotated[int, Meta(ge=1, le=100), Described("secret draws of inputs for each case")] = 3
    max_work: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Described(
            f"skip cases whose operations plus bytes of all tensors exceed this; the two smallest seen and held-out "
            f"cases are kept. None: no limit, on the CPU platform {CPU_MAX_WORK:.0e}"
        ),
    ] = None
    max_held: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Described("skip `large` cases with more bytes of tensors; None: an eighth of the device's memory"),
    ] = None
    call_timeout_s: Annotated[float, Meta(gt=0, le=3600), Described("seconds that one call may take")] = 60.0
    timing_budget_s: Annotated[
        float,
        Meta(gt=0, le=60),
        Described("seconds of timed passes for a case; up to twelve times as long if noisy", (EVALUATE, RUN)),
    ] = 0.16
    graphs: Annotated[
        bool, Described("replay timed calls as device graphs where the device has them", (EVALUATE, RUN))
    ] = True
    eager_stream: Annotated[
        bool, Described("PyTorch baselines: also time PyTorch eager without a graph", (EVALUATE, RUN))
    ] = False
    torch_compile: Annotated[bool, Described("PyTorch baselines: also time `torch.compile`", (EVALUATE, RUN))] = False
    targets: Annotated[
        Annotated[tuple[Architecture, ...], Meta(extra_json_schema={"uniqueItems": True})],
        Described("cross-compile for these architectures, such as `gfx942` or `sm_90`; no such GPU is needed"),
    ] = ()
    execute: Annotated[
        bool,
        Described(f"also execute machine code for {' or '.join(EXECUTED)} on the CPU, on the smallest seen case"),
    ] = False
    host_memory_bytes: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Described("resident memory of a candidate's processes; None: half of the machine's"),
    ] = None
    case: Annotated[tuple[str, ...], Described("judge these cases alone, such as `heldout-03`", (EVALUATE,))] = ()
    like: Annotated[
        str | None,
        Described(
            "judge one case made up from the smallest seen one, or that of `case`, such as `M=4097 dtype=bfloat16`: "
            "a development aid, no verdict",
            (EVALUATE,),
        ),
    ] = None
    dump: Annotated[
        str | None,
        Described(
            "folder for inputs, expected and actual outputs of the first failing call, or of one in the case that is "
            "named, and for a script that repeats it",
            (EVALUATE,),
        ),
    ] = None
    profile: Annotated[
        bool, Described("also say where the time of one call goes, on the largest seen case", (EVALUATE,))
    ] = False


@dataclass(frozen=True)
class OptionSpec:
    """One option, as commands and pages show it."""

    name: str
    kind: type
    """the type of one value: `bool`, `int`, `float`, `str` or an enum"""
    many: bool
    default: Any
    text: str
    commands: tuple[str, ...]
    bounds: str
    """such as `1 to 100`; empty: none"""

    @property
    def flag(self) -> str:
        """Return the option of the command line."""
        return f"--{self.name.replace('_', '-')}"


@cache
def specs() -> dict[str, OptionSpec]:
    """Return every option by name, in the order of `Options`."""
    hints = get_type_hints(Options, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(Options)}
    return {name: _spec(name, hint, defaults[name]) for name, hint in hints.items()}


def options_of(given: Mapping[str, Any], command: str = "", spelled: str = "option `{}`") -> Options:
    """Return the options that a caller gives. `heldout` depends on the effort unless it is given.

    Args:
        given: Values by name, as a file or a command line holds them.
        command: One of `EVALUATE`, `RUN`, `SERVE`, whose options alone are taken; empty: all.
        spelled: How an error names an option.

    Raises:
        UsageError: An unknown option, a value out of bounds, or options that do not go together.
    """
    known = [name for name, spec in specs().items() if not command or command in spec.commands]
    for name in given:
        if name not in known:
            raise UsageError(f"unknown option `{name}`; expected one of: {', '.join(sorted(known))}")
    values: dict[str, Any] = {name: _plain(value) for name, value in given.items()}
    if isinstance(values.get("targets"), list):
        values["targets"] = architectures(values["targets"])
    stated = {
        name: _listed(value) for name, value in values.items() if value is not None or specs()[name].default is not None
    }
    from arena.task.faults import fault_of  # takes 50 ms to import

    problem = fault_of(stated, json_schema())
    if problem is not None:
        place, text = problem
        raise UsageError(f"{spelled.format(place[0])}: {text}")
    effort = Effort(values.get("effort", Effort.FULL))
    options: Options = msgspec.convert({"heldout": effort.runs_heldout, **values}, Options)
    if options.execute and not set(options.targets) & set(EXECUTED):
        raise UsageError(f"`execute` needs one of {', '.join(EXECUTED)} among the targets: their machine code is known")
    return options


def overriding(given: Mapping[str, Any], spelled: str = "option `{}`") -> dict[str, Any]:
    """Return what a caller puts above a run's file, checked as the file is; raises as `options_of` does."""
    checked = options_of({"targets": EXECUTED, **given}, RUN, spelled)
    return {name: getattr(checked, name) for name in given}


def architectures(names: Iterable[str]) -> tuple[str, ...]:
    """Return names from lists with commas, in order, without repetition; raises `UsageError` for an unknown one."""
    found: dict[str, None] = {}
    for name in (part.strip() for text in names for part in str(text).split(",")):
        if name and name not in ARCHITECTURES:
            near = difflib.get_close_matches(name, ARCHITECTURES, n=1)
            hint = f", did you mean {near[0]}?" if near else "."
            raise UsageError(f"unknown target {name!r}{hint} Known: {', '.join(ARCHITECTURES)}")
        if name:
            found[name] = None
    return tuple(found)


ARCHITECTURES: tuple[str, ...] = get_args(Architecture)


def json_schema(command: str = "") -> dict[str, Any]:
    """Return the JSON schema of the options that a command takes; empty: of all. None is no value in a file."""
    whole = msgspec.json.schema(Options)
    definitions = whole["$defs"]
    shapes = definitions["Options"]["properties"]
    taken = {name: spec for name, spec in specs().items() if not command or command in spec.commands}
    properties = {name: _without_null(shapes[name], definitions) for name in taken}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _without_null(shape: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value with references written out, and without the default."""
    (one,) = [part for part in shape.get("anyOf", [shape]) if part != {"type": "null"}]
    if "$ref" in one:
        one = definitions[one["$ref"].rpartition("/")[2]]
        one = {"enum": list(Effort)} if one.get("title") == Effort.__name__ else one
    kept = {key: value for key, value in one.items() if key not in ("default", "title", "description")}
    if isinstance(kept.get("items"), dict) and "enum" in kept["items"]:
        kept["items"] = {"enum": list(ARCHITECTURES)}
    return kept


def _spec(name: str, hint: Any, default: Any) -> OptionSpec:
    parts = list(_parts(hint))
    described = next(part for part in parts if isinstance(part, Described))
    kinds = [part for part in parts if isinstance(part, type) and part is not type(None)]
    many = any(get_origin(part) is tuple for part in parts)
    bounds = next((_bounds(part) for part in parts if isinstance(part, Meta) and _bounds(part)), "")
    return OptionSpec(name, kinds[0] if kinds else str, many, default, described.text, described.commands, bounds)


def _parts(hint: Any) -> Iterable[Any]:
    """Yield a type, what it is made of, and what is said of each."""
    yield hint
    if get_origin(hint) is Annotated:
        yield from hint.__metadata__
        yield from _parts(hint.__origin__)
    elif get_origin(hint) is not Literal:
        for part in get_args(hint):
            yield from _parts(part)


def _bounds(meta: Meta) -> str:
    if meta.ge is not None and meta.le is not None:
        return f"{meta.ge} to {meta.le}"
    if meta.gt is not None and meta.le is not None:
        return f"above {meta.gt}, at most {meta.le}"
    if meta.ge is not None:
        return f"at least {meta.ge}"
    return f"above {meta.gt}" if meta.gt is not None else ""


def _plain(value: object) -> object:
    """Return a value as a file would hold it: any sequence but text as a list."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else value


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
