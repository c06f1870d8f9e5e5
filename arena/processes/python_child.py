"""Command lines and environments of Python child processes: nothing is imported from the folder they start in.

Without `-P`, the judge would import a file `yaml.py` that lies beside a kernel. All that start Python use this.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from arena.package import PACKAGE

SAFE_PATH = "PYTHONSAFEPATH"
_SEARCH_PATH = "PYTHONPATH"
_STARTER = str(PACKAGE / "processes" / "run_module.py")


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module as `python -m` does, with this copy of the package.

    Isolated mode (`-I`) is no choice: it ignores `PYTHONPATH` and the user's packages, where the package or PyTorch may
    be installed.
    """
    return [sys.executable, "-P", _STARTER, module, *arguments]


def python_code(code: str, *arguments: str) -> list[str]:
    """Return the command line that runs code as `python -c` does."""
    return [sys.executable, "-P", "-c", code, *arguments]


def python_environment(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment in which the children of a child do not import from their folder either.

    In `PYTHONPATH` an empty entry, which a colon too many makes, means the current folder: it is left out. Relative
    entries become absolute, so that they mean the same in every process.
    """
    environment = {**given, SAFE_PATH: "1"}
    entries = [entry for entry in environment.pop(_SEARCH_PATH, "").split(os.pathsep) if entry]
    if entries:
        environment[_SEARCH_PATH] = os.pathsep.join(str(Path(entry).absolute()) for entry in entries)
    return environment


def leave_start_folder() -> None:
    """Take the folder that Python adds for a script, for `-m` or `-c` off this process's search path.

    It is the current folder, or that of the command `arena`. What is imported of the package is found without it.
    """
    if sys.flags.safe_path or not sys.path:
        return
    script = str(Path(sys.argv[0]).resolve().parent) if sys.argv and sys.argv[0] else ""
    if sys.path[0] in ("", str(Path.cwd()), script):
        del sys.path[0]
