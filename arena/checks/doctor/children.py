"""Children that write down what they see: a file that is replaced whole, so that it survives their sudden end."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from arena.errors import ArenaError
from arena.processes import process
from arena.processes.python_child import python_environment, python_module
from arena.processes.sandbox import network

T = TypeVar("T")
_TAIL = 600


def ask_child(
    module: str, arguments: tuple[str, ...], kind: type[T], timeout_s: float, *, shares_network: bool = False
) -> tuple[T, str]:
    """Run `python -m module FILE arguments…`; what it wrote last, and how it ended if it should have gone on.

    `shares_network`: whether it starts in an empty network that its workers share, as a judge would.
    """
    with tempfile.TemporaryDirectory(prefix="arena-doctor-") as folder:
        file = Path(folder) / "seen.json"
        command = python_module(module, str(file), *arguments)
        done = process.run(
            network.starting(command, shared=shares_network), timeout_s=timeout_s, env=python_environment()
        )
        seen = msgspec.json.decode(file.read_bytes(), type=kind) if file.is_file() else kind()
    if done.ok:
        return seen, ""
    how = "ran out of time" if done.timed_out else f"ended with code {done.returncode}"
    return seen, f"the child {how}: {done.output.strip()[-_TAIL:]}"


def write_down(file: Path, seen: object) -> None:
    """Replace the file by what has been seen so far."""
    staged = file.with_suffix(".new")
    staged.write_bytes(msgspec.json.encode(seen))
    staged.replace(file)


def problem_of(work: Callable[[], None]) -> str:
    """Do it; what went wrong, or nothing."""
    try:
        work()
    except ArenaError as problem:
        return str(problem)
    except Exception:
        return traceback.format_exc()[-_TAIL:]
    return ""
