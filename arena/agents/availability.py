"""Whether an agent's program can start here: is it installed, which version, are its credentials set."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.agents.box import PYTHONS
from arena.agents.definition import Definition, with_neighbours
from arena.processes import process

_VERSION_S = 30.0
_INSTALLED_IN = "node_modules"
_answers: dict[tuple[object, ...], str] = {}
"""Versions by command, environment, program and when that was last changed: each of many trials needs them."""


@dataclass(frozen=True)
class Availability:
    """What was found. `binary` is None where the program is not installed; `missing` names unset credentials."""

    binary: Path | None
    version: str
    missing: tuple[str, ...]

    @property
    def can_start(self) -> bool:
        """Return whether it is installed, and has the one credential it needs, where it needs any."""
        return self.binary is not None and not self.missing

    def lacks(self, definition: Definition) -> str:
        """What keeps it from starting, and what to do; empty where nothing does."""
        if self.binary is None:
            how = f"; install it with `{definition.install}`" if definition.install else ""
            where = "not an executable file" if "/" in definition.command[0] else "not on PATH"
            return f"{definition.command[0]} is {where}{how}"
        return f"set {' or '.join(self.missing)}" if self.missing else ""


def find_availability(definition: Definition, environ: Mapping[str, str] = os.environ) -> Availability:
    """Look for a program and ask it for its version. One of the credentials is enough."""
    program = definition.command[0]
    found = sys.executable if program in PYTHONS else shutil.which(program, path=environ.get("PATH"))
    binary = None if found is None else Path(found).absolute()
    given = [name for name in definition.credentials if environ.get(name)]
    version = _version(definition, environ) if binary is not None else ""
    return Availability(binary, version, () if given else definition.credentials)


def places_of(binary: Path) -> tuple[Path, ...]:
    """What a program needs to see of itself: where it is named, where it lies, what it was installed with, Node.js.

    Folders, but for a program that lies in a home folder itself: that is not shown for its sake.
    """
    programs = [binary, *filter(None, [_node()])]
    found = []
    for place in [path for program in programs for path in (program, program.resolve())]:
        found.append(with_neighbours(place))
        found += [above for above in place.parents if above.name == _INSTALLED_IN]
        found += [folder for above in place.parents for folder in _environment(above)]
    unique = tuple(dict.fromkeys(found))
    return tuple(one for one in unique if not any(one != other and one.is_relative_to(other) for other in unique))


def _environment(folder: Path) -> tuple[Path, ...]:
    """A virtual environment and the Python that it was made from; nothing for any other folder."""
    settings = folder / "pyvenv.cfg"
    if not settings.is_file():
        return ()
    lines = settings.read_text(encoding="utf-8", errors="replace").splitlines()
    homes = [Path(value.strip()) for key, _, value in (line.partition("=") for line in lines) if key.strip() == "home"]
    return (folder, *(home.parent if home.name == "bin" else home for home in homes))


def _node() -> Path | None:
    """The interpreter of most agents' programs; it may lie outside of the system's folders."""
    found = shutil.which("node")
    return None if found is None else Path(found).absolute()


def _version(definition: Definition, environ: Mapping[str, str]) -> str:
    """What it answered before, while it lies there unchanged; else it is asked. Empty where it gives no answer."""
    known = {name: environ[name] for name in ("PATH", "HOME", "LANG") if name in environ}
    named = shutil.which(definition.version[0], path=known.get("PATH")) if definition.version else None
    if named is None:
        return ""
    try:
        program = Path(named).resolve(strict=True)
        question = (definition.version, tuple(known.items()), program, program.stat().st_mtime_ns)
        if question not in _answers and (answer := _ask(definition.version, known)):
            _answers[question] = answer
    except OSError:
        return ""
    return _answers.get(question, "")


def _ask(command: tuple[str, ...], known: Mapping[str, str]) -> str:
    """The last line it prints; a program that fails, hangs or says nothing has none."""
    done = process.run(command, timeout_s=_VERSION_S, env=known)
    lines = done.output.strip().splitlines()
    return lines[-1].strip() if done.ok and lines else ""
