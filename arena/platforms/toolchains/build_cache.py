"""A build cache on disk: an entry is a folder named by the hash of everything that went into it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from arena.errors import MachineError

STAGING = "staging"


def make_folder(folder: Path) -> None:
    """Make a folder of the user's cache, with those above it. Raises `MachineError` where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise _unwritable(problem) from None


def _unwritable(problem: OSError) -> MachineError:
    where = f"{problem.filename}: {problem.strerror}"
    return MachineError(f"the cache cannot be written: {where}; set XDG_CACHE_HOME to a folder that can")


def content_key(parts: Mapping[str, str]) -> str:
    """Return the sha256 of named texts; no two different mappings share one by moving a boundary."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        for text in (name, parts[name]):
            data = text.encode("utf-8", errors="surrogateescape")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.hexdigest()


class BuildCache:
    """Entries under `root`. Several processes may share it: an entry appears whole, by one rename, or not at all."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def find(self, key: str) -> Path | None:
        """Return the folder of an entry, or None where it was never built."""
        entry = self._entry(key)
        return entry if entry.is_dir() else None

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Give a private empty folder on the cache's own file system, and remove what is left of it afterwards.

        Raises `MachineError` where the cache cannot be written.
        """
        folder = self._new_folder()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        shelf = self.root / STAGING
        make_folder(shelf)
        try:
            return Path(tempfile.mkdtemp(dir=shelf))
        except OSError as problem:
            raise _unwritable(problem) from None

    def publish(self, staged: Path, key: str) -> Path:
        """Move a finished folder into its place; where another process was faster, its entry stands."""
        entry = self._entry(key)
        entry.parent.mkdir(parents=True, exist_ok=True)
        try:
            staged.rename(entry)
        except OSError:
            if not entry.is_dir():
                raise
        return entry

    def _entry(self, key: str) -> Path:
        return self.root / key[:2] / key
