"""Where the folders that travel with the package lie: `tasks`, `configs`, `yardsticks` and `examples`."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
_DATA = PACKAGE / "data"
"""made when a wheel is built, and in no checkout"""


def resource(name: str) -> Path:
    """Return a folder that travels with the package: in a wheel below `arena/data`, else beside the package.

    Args:
        name: `tasks`, `configs`, `yardsticks` or `examples`.

    Returns:
        An absolute path, whether or not anything lies there.
    """
    return _beside(PACKAGE, name)


def other_copies() -> tuple[Path, ...]:
    """Return the folders of other copies of the package that modules are imported from.

    One checkout may be installed while another one runs. Both hold the same held-out cases.
    """
    packages = (Path(entry).resolve() / PACKAGE.name for entry in sys.path if entry)
    return tuple(p for p in dict.fromkeys(packages) if p != PACKAGE and (p / "__init__.py").is_file())


def tasks_of_other_copies() -> tuple[Path, ...]:
    """Return their corpora."""
    return tuple(folder for folder in (_beside(package, "tasks") for package in other_copies()) if folder.is_dir())


def _beside(package: Path, name: str) -> Path:
    data = package / "data"
    return data / name if data.is_dir() else package.parent / name


def own_folders() -> tuple[Path, ...]:
    """Return the folders that hold the harness: the package, and the checkout around it where there is one."""
    return (PACKAGE,) if _DATA.is_dir() else (PACKAGE, PACKAGE.parent)
