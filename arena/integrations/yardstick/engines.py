"""Find an engine's Python files and its version. Used by `sources` and `measuring`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from arena.errors import UsageError
from arena.integrations.checkout import commit_of

PACKAGES: Mapping[str, str] = {"vllm": "vllm", "sglang": "sglang", "fla": "fla", "mamba": "mamba_ssm"}
"""Python packages by engine"""
_DISTRIBUTIONS = {"fla": ("fla_core", "flash_linear_attention")}
"""names under which an engine is installed, where they differ from its package"""
_NESTED = ("", "python", "src")
"""folders of a checkout that may hold the package"""


@dataclass(frozen=True)
class Engine:
    """One engine that is there.

    Attributes:
        name: a key of `PACKAGES`.
        root: the folder that holds its package.
        version: a released version, a commit, or `unknown`.
    """

    name: str
    root: Path
    version: str

    @property
    def package(self) -> str:
        """Name of its Python package."""
        return PACKAGES[self.name]

    @property
    def version_file(self) -> Path:
        """Return the file in which `collect` notes the version beside the files it copies."""
        return self.root / f"{self.package}.version"


def find_engine(name: str, sources: Sequence[Path] = ()) -> Engine | None:
    """Find an engine in the first folder that holds its package, else among the installed packages.

    Args:
        name: a key of `PACKAGES`.
        sources: checkouts, or folders that `collect` wrote.

    Returns:
        The engine, or None where it is in none of them. It is never imported.

    Raises:
        UsageError: a source is no folder.
    """
    package = PACKAGES[name]
    for source in sources:
        if not source.is_dir():
            raise UsageError(f"--source {source}: no such folder")
        for nested in _NESTED:
            root = source / nested
            if (root / package).is_dir():
                return Engine(name, root, _version(name, root))
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec else None
    if not places:
        return None
    root = Path(next(iter(places))).parent
    return Engine(name, root, _version(name, root))


def _version(name: str, root: Path) -> str:
    """Return the noted version, that of the installed distribution, or the commit of a checkout."""
    noted = root / f"{PACKAGES[name]}.version"
    if noted.is_file():
        return noted.read_text(encoding="utf-8").strip()
    for distribution in _DISTRIBUTIONS.get(name, (PACKAGES[name],)):
        for folder in sorted(root.glob(f"{distribution}-*.dist-info")):
            return folder.name.removeprefix(f"{distribution}-").removesuffix(".dist-info")
    return commit_of(root)[:12] or "unknown"
