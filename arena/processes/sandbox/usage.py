"""Measure what untrusted processes take of disk and memory files: they may put anything there at any moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

BLOCK_BYTES = 512
ENTRY_BYTES = 16 << 10
"""what a file or folder counts at least: many empty ones fill no disk, but take long to delete"""
UNMEASURABLE = 1 << 60
"""what a folder counts that cannot be read: nothing could be said of how much lies there"""


def folder_bytes(folders: Iterable[Path]) -> int:
    """Bytes on disk under these folders, of each entry `ENTRY_BYTES` or more, no link followed.

    `UNMEASURABLE` where one could not be read.
    """
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
            total += max(info.st_blocks * BLOCK_BYTES, ENTRY_BYTES)
            if stat.S_ISDIR(info.st_mode):
                waiting.append(entry.path)
    return total


def _entries(folder: str) -> Iterable[os.DirEntry[str] | None]:
    """Return what a folder holds; None in the place of what cannot be read, nothing where it has just vanished."""
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


def memory_file_bytes(processes: Iterable[int]) -> int:
    """Bytes of files in memory without a name that these processes hold open, mapped or not."""
    seen: dict[tuple[int, int], int] = {}
    for process in processes:
        folder = f"/proc/{process}/fd"
        with suppress(OSError):
            for number in os.listdir(folder):  # noqa: PTH208
                with suppress(OSError):
                    if os.readlink(f"{folder}/{number}").startswith("/memfd:"):  # noqa: PTH115
                        info = os.stat(f"{folder}/{number}")  # noqa: PTH116
                        seen[info.st_dev, info.st_ino] = info.st_blocks * BLOCK_BYTES
    return sum(seen.values())
