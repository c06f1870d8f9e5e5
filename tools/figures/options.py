"""The table of evaluation options on the page on configurations. Used by `tools/claims.py`."""

from __future__ import annotations

from arena.task.options import OptionSpec, specs

SOURCE = "arena/task/options.py"


def table() -> str:
    """Return the options in the order of their specification."""
    rows = ["| key | default | bounds | where | what it does |", "| --- | --- | --- | --- | --- |"]
    for spec in specs().values():
        places = ", ".join(command.removeprefix("arena ") for command in spec.commands)
        rows.append(f"| `{spec.name}` | {_default(spec)} | {spec.bounds or '–'} | {places} | {spec.text} |")
    return "\n".join(rows)


def _default(spec: OptionSpec) -> str:
    if spec.default is None or spec.default == ():
        return "–"
    return f"`{str(spec.default).lower() if isinstance(spec.default, bool) else spec.default}`"
