"""A control group for untrusted processes, where one can be made: stops, ends and counts them all at once.

A signal stops processes too, but one of them can have itself woken by a timer; a frozen group stays frozen. Version 2
of control groups is needed, and a group of our own that we may add to: root outside of containers has it, a user where
systemd delegates one.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from arena.errors import InfrastructureError

_NAME = re.compile(r"arena-box-([0-9]+)-[0-9]+")
_FREEZE_WITHIN_S = 5.0
_numbers = count()


class ControlGroup:
    """One control group. `make` is how it is come by; `remove` takes it away once its processes have ended."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls) -> ControlGroup | None:
        """A new empty group below our own, or None where that cannot be had."""
        parent = own_group()
        if parent is None:
            return None
        with suppress(OSError):
            _sweep(parent)
        group = cls(parent / f"arena-box-{os.getpid()}-{next(_numbers)}")
        try:
            group.path.mkdir()
        except OSError:
            return None
        if not os.access(group.path / "cgroup.freeze", os.W_OK):
            group.remove()
            return None
        return group

    @classmethod
    def hold(cls, process: int, most_processes: int) -> ControlGroup | None:
        """A new group with this process and what it will start in it, or None where that cannot be had."""
        group = cls.make()
        if group is None:
            return None
        if not group.add(process):
            group.remove()
            return None
        group.limit_processes(most_processes)
        return group

    def add(self, process: int) -> bool:
        """Move a process in; what it starts from now on is in it too. False where that is not allowed."""
        return self._write("cgroup.procs", str(process))

    def limit_processes(self, most: int) -> bool:
        """Let at most so many processes and threads be there; False where the kernel does not count them here."""
        return self._write("pids.max", str(most))

    def freeze(self) -> None:
        """Return when no process of the group runs. Raises `InfrastructureError` where that does not come about."""
        if not self._write("cgroup.freeze", "1"):
            raise InfrastructureError(f"{self.path}: the control group is gone")
        deadline = time.monotonic() + _FREEZE_WITHIN_S
        while "frozen 1" not in (self.path / "cgroup.events").read_text(encoding="ascii"):
            if time.monotonic() > deadline:
                raise InfrastructureError(f"{self.path}: processes of the control group cannot be frozen")
            time.sleep(0.0005)

    def thaw(self) -> None:
        """Let them go on."""
        self._write("cgroup.freeze", "0")

    def kill(self) -> None:
        """SIGKILL every process in it, frozen ones too."""
        self._write("cgroup.kill", "1")

    def members(self) -> set[int]:
        """The processes in it."""
        try:
            text = (self.path / "cgroup.procs").read_text(encoding="ascii")
        except OSError:
            return set()
        # 0 stands for a process of another PID namespace, and as a target of signals for ourselves.
        return {int(line) for line in text.split() if line != "0"}

    def remove(self) -> None:
        """Remove the group; one that still has processes stays, for a later `make` to remove."""
        with suppress(OSError):
            self.path.rmdir()

    def _write(self, name: str, text: str) -> bool:
        try:
            (self.path / name).write_text(text, encoding="ascii")
        except OSError:
            return False
        return True


def own_group() -> Path | None:
    """The folder of the group that this process is in, in the hierarchy of version 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    name = next((line[len("0::") :] for line in lines if line.startswith("0::")), None)
    root = next((fields[1] for line in mounts if (fields := line.split())[2] == "cgroup2"), None)
    if name is None or root is None:
        return None
    folder = Path(root + name)
    return folder if folder.is_dir() else None


def _sweep(parent: Path) -> None:
    """Remove the groups of harnesses that were killed."""
    for folder in parent.glob("arena-box-*"):
        found = _NAME.fullmatch(folder.name)
        if found and not Path("/proc", found[1]).exists():
            group = ControlGroup(folder)
            group.kill()
            group.remove()
