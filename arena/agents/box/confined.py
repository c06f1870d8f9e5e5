"""A command that runs in a box: stopped, measured and ended, whichever way the box was made."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
from pathlib import Path
from typing import IO

from arena.agents.box import processes
from arena.errors import InfrastructureError
from arena.processes.sandbox.cgroup import ControlGroup
from arena.processes.sandbox.usage import deleted_bytes, folder_bytes


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


_ENDS_WITHIN_S = 10.0


class Confined:
    """See `arena.agents.box.Boxed`.

    `outer` is the process that was started here and stands for the command; `members` are the agent's own processes;
    `folders` are those whose contents count as disk used.
    """

    def __init__(
        self,
        outer: subprocess.Popen[bytes],
        members: processes.Members,
        folders: tuple[Path, ...],
        group: ControlGroup | None,
    ) -> None:
        assert outer.stdout is not None and outer.stderr is not None
        self.stdout: IO[bytes] = outer.stdout
        self.stderr: IO[bytes] = outer.stderr
        self._outer, self._members, self._folders, self._group = outer, members, folders, group
        self._lock = threading.Lock()
        self._stopped: set[int] = set()
        self._dead = False

    @property
    def frozen_as_group(self) -> bool:
        """Return whether a pause is the kernel's freezer and not only a signal to each process."""
        return self._group is not None

    def poll(self) -> int | None:
        """See `arena.agents.box.Boxed`."""
        return self._outer.poll()

    def pause(self) -> None:
        """See `arena.agents.base.Pausable`. What has been killed stands still already."""
        with self._lock:
            if self._dead:
                return
            if self._group is not None:
                self._group.freeze()
            else:
                self._stopped |= processes.stop_all(self._members)

    def resume(self) -> None:
        """See `arena.agents.base.Pausable`."""
        with self._lock:
            if self._dead:
                return
            if self._group is not None:
                self._group.thaw()
            else:
                processes.send(self._stopped & self._members(), signal.SIGCONT)
                self._stopped.clear()

    def disk_used(self) -> int:
        """See `arena.agents.box.Boxed`."""
        return folder_bytes(self._folders) + deleted_bytes(self._members(), self._folders)

    def kill(self) -> None:
        """See `arena.agents.box.Boxed`. Raises `InfrastructureError` where a process survives."""
        with self._lock:
            if self._dead:
                return
            if self._group is not None:
                self._group.kill()
            processes.kill_all(self._members)
            self._outer.kill()
            try:
                self._outer.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                raise InfrastructureError("the process that stands for the agent's command does not end") from None
            processes.kill_all(self._members)
            self._dead = True
            if self._group is not None:
                self._group.remove()

    def close(self) -> None:
        """Kill what is left and close the pipes, which end then."""
        self.kill()
        self.stdout.close()
        self.stderr.close()
