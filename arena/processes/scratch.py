"""Temporary folders, and files in memory, that name their process: what a killed one left can be told and removed."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

from arena.errors import MachineError
from arena.processes.process_table import all_processes

_NAME = re.compile(r"arena-[a-z]+-(?P<namespace>[0-9]+)-(?P<owner>[0-9]+)-")
_MEMORY = "/memfd:"


def scratch(what: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for `what`, a lower-case word; a context manager that removes it."""
    return tempfile.TemporaryDirectory(prefix=prefix(what), ignore_cleanup_errors=True)


def prefix(what: str) -> str:
    """Return how the name of such a folder begins, for those who make and remove it themselves."""
    return f"arena-{what}-{_namespace()}-{os.getpid()}-"


def require_executable(folder: Path) -> None:
    """Raise `MachineError` where code below a folder for temporary files cannot be loaded."""
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise MachineError(
            f"compiled kernels cannot be loaded from {folder}: its file system is mounted noexec; set TMPDIR to a "
            "folder on another one"
        )


def sealed_memory(what: str, num_bytes: int) -> int:
    """Return a file of zeros in memory that nobody can resize: safe to map beside whoever is not trusted."""
    number = os.memfd_create(prefix(what), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(number, num_bytes)
    fcntl.fcntl(number, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return number


def in_memory(what: str, content: bytes) -> int:
    """A file in memory, at its beginning: an agent can read back all of its standard input, and learns no path."""
    number = os.memfd_create(prefix(what))
    view = memoryview(content)
    while view:
        view = view[os.write(number, view) :]
    os.lseek(number, 0, os.SEEK_SET)
    return number


def sweep() -> int:
    """Remove the folders of processes that are no more, and return how many there were.

    Processes that such a one gave an `in_memory` file for standard input are ended: bubblewrap, whose parent was killed
    while it made a box, waits for it for ever.
    """
    for process in all_processes():
        if _of_a_killed_one(_input_of(process)):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
    found = Path(tempfile.gettempdir()).glob("arena-*")
    left = [path for path in found if _of_a_killed_one(path.name) and path.is_dir() and not path.is_symlink()]
    for path in left:
        remove(path)
    return len(left)


def remove(folder: Path) -> None:
    """Delete a folder that untrusted programs have written, as far as that can be done."""
    with suppress(OSError):
        folder.chmod(0o700)
        clear(folder)
        folder.rmdir()


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


def _of_a_killed_one(name: str) -> bool:
    """Return whether the name is of a process that is no more; a container's are not known here, and are kept."""
    found = _NAME.match(name)
    return found is not None and int(found["namespace"]) == _namespace() and not _lives(int(found["owner"]))


def _namespace() -> int:
    """Return which numbers of processes are meant."""
    return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116


def _input_of(process: int) -> str:
    """The name of the file in memory that a process has for standard input; empty where it is another file, or gone."""
    try:
        source = os.readlink(f"/proc/{process}/fd/0")  # noqa: PTH115
    except OSError:
        return ""
    return source.removeprefix(_MEMORY) if source.startswith(_MEMORY) else ""


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
