"""Options of an evaluation on the command line, made from `arena.task.options`: one flag each, of the same name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from arena.task.options import Options, OptionSpec, options_of, specs

GIVEN = "given"
"""the parameter of a command that gets the options by name, without those that are left open"""
FLAG = "--{}"
"""how errors name an option of the command line"""


def takes_options(
    command: str, *, names: Collection[str] = (), others: Mapping[str, Any] | None = None, defaults: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a flag for each evaluation option that a command takes.

    Args:
        command: Its name in the options' own list, such as `arena run`.
        names: Take these alone.
        others: Defaults of this command that differ from those of `Options`.
        defaults: Whether the help shows defaults; a run's are those of its file.
    """
    chosen = [spec for name, spec in specs().items() if name in names or (not names and command in spec.commands)]
    different = dict(others or {})

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**arguments: Any) -> None:
            values = {spec.name: arguments.pop(spec.name) for spec in chosen}
            typed = {name: value for name, value in values.items() if value is not None and value != []}
            function(**arguments, **{GIVEN: {**different, **typed}})

        signature = inspect.signature(function)
        hints = get_type_hints(function, include_extras=True)
        own = [part for name, part in signature.parameters.items() if name != GIVEN]
        added = [_parameter(spec, different.get(spec.name, spec.default), shown=defaults) for spec in chosen]
        parameters = [part.replace(annotation=hints[part.name], kind=part.KEYWORD_ONLY) for part in own]
        run.__signature__ = signature.replace(parameters=[*parameters, *added])  # type: ignore[attr-defined]
        run.__annotations__ = {part.name: part.annotation for part in [*parameters, *added]}
        return run

    return decorate


def chosen_options(given: Mapping[str, Any], command: str) -> Options:
    """Return the options of a command line; raises `UsageError`, which names the flag, for a value out of bounds."""
    return options_of(given, command, FLAG)


def _parameter(spec: OptionSpec, default: object, *, shown: bool) -> inspect.Parameter:
    flag = f"{spec.flag}/--no-{spec.flag[2:]}" if spec.kind is bool and default is not False else spec.flag
    kind: Any = list[str] if spec.many else spec.kind
    text = spec.text[0].upper() + spec.text[1:] + (f" ({spec.bounds})" if spec.bounds else "") + "."
    value = ",".join(default) if isinstance(default, tuple) else str(default)
    option = typer.Option(flag, help=text, show_default=value if shown and default not in (None, (), False) else False)
    return inspect.Parameter(
        spec.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )
