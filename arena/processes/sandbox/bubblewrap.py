"""Find out what bubblewrap can do on this machine, and hold the options that all its boxes share."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from arena.processes import process
from arena.processes.sandbox import seccomp, visible
from arena.processes.sandbox.calls import machine
from arena.processes.sandbox.visible import Mount, Way

SCRATCH_BYTES = 1 << 30
UID = "1000"
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
_CONDUCT = ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
_USER = ("--unshare-user", "--uid", UID, "--gid", UID)
_PROBE_S = 20.0


@dataclass(frozen=True)
class Features:
    """Features of the bubblewrap of this machine. `problem` says why it does not work."""

    works: bool
    problem: str = ""
    program: str = ""
    version: str = ""
    users: tuple[str, ...] = ()
    """options for a user namespace; empty where root does without one"""
    sized: bool = False
    """whether folders in memory can be given a size"""
    filters: bool = False
    """whether it can be handed a filter for system calls"""

    def describe(self) -> str:
        """One sentence for a person."""
        users = "its own user namespace" if self.users else "no user namespace"
        nested = ", none nested in it" if "--disable-userns" in self.users else ""
        return f"{self.version} with {users}{nested}"


@cache
def features() -> Features:
    """Find bubblewrap, and try whether it can make a box; the strictest way that works is taken."""
    program = shutil.which("bwrap")
    if program is None:
        return Features(False, "bwrap is not installed; the system's package is called bubblewrap")
    helped = process.run([program, "--help"], timeout_s=_PROBE_S)
    if helped.timed_out:
        return Features(False, f"{program} did not print its help within {_PROBE_S:.0f} s; is the machine busy?")
    text = helped.output
    version = process.run([program, "--version"], timeout_s=_PROBE_S).output.strip()
    if "--info-fd" not in text or "--cap-drop" not in text or "--block-fd" not in text:
        return Features(False, f"{version} is too old: it lacks --info-fd, --cap-drop or --block-fd")
    filters = "--seccomp" in text and machine() is not None
    found = Features(True, "", program, version, sized="--size BYTES" in text, filters=filters)
    ways: list[tuple[str, ...]] = [(*_USER, "--disable-userns")] if "--disable-userns" in text else []
    ways += [_USER, ()] if os.geteuid() == 0 else [_USER]
    problem = ""
    for way in ways:
        tried = replace(found, users=way)
        done = process.run([program, *_try_out(tried)], timeout_s=_PROBE_S, env={})
        if done.ok:
            return tried
        late = f"it took longer than {_PROBE_S:.0f} s" if done.timed_out else ""
        problem = problem or late or done.output.strip()
    return Features(False, f"{version} cannot make a box here: {problem}")


def _try_out(found: Features) -> list[str]:
    """Options and command of a box that does nothing."""
    fill = [option for mount in visible.in_order(visible.system_mounts()) for option in mount_options(mount, found)]
    return [*options(found), *fill, *proc_options(), "--dev", "/dev", "--", "/bin/sh", "-c", ":"]


def options(found: Features) -> list[str]:
    """Namespaces, and how processes inside are held."""
    return [*found.users, *_NAMESPACES, *_CONDUCT]


def mount_options(mount: Mount, found: Features, most_bytes: int = SCRATCH_BYTES) -> list[str]:
    """Return how a place is filled; folders in memory hold at most `most_bytes`."""
    size = ["--size", str(min(most_bytes, SCRATCH_BYTES))] if found.sized else []
    match mount.way:
        case Way.READ_ONLY:
            return ["--ro-bind", mount.source, mount.place]
        case Way.WRITABLE:
            return ["--bind", mount.source, mount.place]
        case Way.LINK:
            return ["--symlink", mount.source, mount.place]
        case Way.EMPTY | Way.SCRATCH:
            return [*size, "--tmpfs", mount.place]


def proc_options() -> list[str]:
    """A /proc of the box's own processes, in which nothing of the kernel's can be set.

    bubblewrap covers only what it may not write, and takes the folder's word for it: the files in /proc/sys belong to
    root, so that a box of root could set them for the whole machine. What only root may read is emptied.
    """
    options = ["--proc", "/proc"]
    for path in sorted(Path("/proc").iterdir()):
        if path.name.isdigit() or path.is_symlink():
            continue
        mode = path.stat().st_mode
        if path.is_file() and not mode & 0o044:
            options += ["--ro-bind", os.devnull, str(path)]
        elif path.is_dir() or mode & 0o222:
            options += ["--ro-bind", str(path), str(path)]
    return options


def filter_file() -> int | None:
    """A file in memory with the system call filter, for `--seccomp`; to be closed. None where there is none."""
    here = machine()
    if here is None:
        return None
    number = os.memfd_create("filter")
    os.write(number, seccomp.program(seccomp.Strictness.PROGRAM, here, 0))
    os.lseek(number, 0, os.SEEK_SET)
    return number
