"""Looking at folders that an agent writes: it may put links, pipes or very large files there at any moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from itertools import count
from pathlib import Path

BLOCK_BYTES = 512
UNMEASURABLE = 1 << 60
"""what a folder counts that cannot be looked into: nothing could be said of how much lies there"""


def read_candidate(workspace: Path, name: str, most_bytes: int) -> bytes | None:
    """The contents of the file `name` (no folders in it) in `workspace`, or None.

    None where it is missing, is anything but a regular file (a link, a pipe, a folder), or is larger than `most_bytes`.
    """
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        return None
    try:
        folder = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # A pipe opened without O_NONBLOCK would wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(name, flags, dir_fd=folder), "rb", buffering=0) as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return _at_most(file.fileno(), most_bytes)
    except OSError:
        return None
    finally:
        os.close(folder)


def _at_most(file: int, most_bytes: int) -> bytes | None:
    # The size is not asked for: the file may grow between question and reading.
    content = bytearray()
    while len(content) <= most_bytes:
        chunk = os.read(file, min(1 << 20, most_bytes + 1 - len(content)))
        if not chunk:
            return bytes(content)
        content += chunk
    return None


def folder_bytes(folders: Iterable[Path]) -> int:
    """Bytes on disk under these folders, no link followed; `UNMEASURABLE` where one could not be looked into."""
    total = 0
    linked: set[tuple[int, int]] = set()
    waiting = [os.fspath(folder) for folder in folders]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry is None:
                return UNMEASURABLE
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError:
                return UNMEASURABLE
            if (info.st_dev, info.st_ino) in linked:
                continue
            if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
                linked.add((info.st_dev, info.st_ino))
            total += info.st_blocks * BLOCK_BYTES
            if stat.S_ISDIR(info.st_mode):
                waiting.append(entry.path)
    return total


def _entries(folder: str) -> Iterable[os.DirEntry[str] | None]:
    """What a folder holds; None in the place of what cannot be read, nothing where it has just vanished."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.close(opened)
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:  # no permission, or a path that is too long: both can be made on purpose
        return (None,)


def deleted_bytes(processes: Iterable[int], folders: Iterable[Path]) -> int:
    """Bytes of deleted files on the folders' file systems that these processes still hold open."""
    devices = {folder.stat().st_dev for folder in folders if folder.exists()}
    seen: dict[tuple[int, int], int] = {}
    for process in processes:
        try:
            open_files = os.listdir(f"/proc/{process}/fd")  # noqa: PTH208
        except OSError:
            continue
        for number in open_files:
            try:
                info = os.stat(f"/proc/{process}/fd/{number}")  # noqa: PTH116
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode) and info.st_nlink == 0 and info.st_dev in devices:
                seen[info.st_dev, info.st_ino] = info.st_blocks * BLOCK_BYTES
    return sum(seen.values())


def clear(folder: Path) -> None:
    """Delete everything in a folder that nobody writes any more, however deep it is and whatever its permissions.

    `shutil.rmtree` ends in a `RecursionError` on a tree of some hundred folders. Here a folder's own folders are moved
    to the top before it is deleted, so that nothing is ever deep. Raises `OSError` where something cannot be deleted.
    """
    numbers = count()
    # Moved ones get names that nothing had before.
    moved = f".{os.urandom(8).hex()}."
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                Path(entry.path).unlink()
                continue
            Path(entry.path).chmod(0o700)
            for inner in list(os.scandir(entry.path)):
                if inner.is_dir(follow_symlinks=False):
                    Path(inner.path).chmod(0o700)
                    Path(inner.path).rename(folder / f"{moved}{next(numbers)}")
                else:
                    Path(inner.path).unlink()
            Path(entry.path).rmdir()
