"""The box by bubblewrap: namespaces of its own for processes, mounts, network, IPC and users, and no capability.

Root stays root for the kernel, seen as uid 1000 from inside: it is held by having no capabilities and no writable mount
of this machine, `/proc/sys` included. What stands in `BoxPlan.environment` reaches bubblewrap through a file
descriptor, so that it appears on no command line.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from arena import process
from arena.agents.box import BoxPlan, view
from arena.agents.box.bubbled import Recipe, launch
from arena.agents.box.confined import Confined
from arena.agents.box.outlet import Outlet
from arena.agents.box.view import Mount, Way
from arena.scratch import scratch

WORKSPACE, HOME, TOOLS, OUTLET = "/workspace", "/home/agent", "/arena", "/run/arena"
SCRATCH_BYTES = 1 << 30
_UID = "1000"
_PASSWD = f"root:x:0:0::/root:/bin/sh\nagent:x:{_UID}:{_UID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
_GROUP = f"root:x:0:\nagent:x:{_UID}:\nnogroup:x:65534:\n"
_HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
_CONDUCT = ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
_USER = ("--unshare-user", "--uid", _UID, "--gid", _UID)
_PROBE_S = 20.0


@dataclass(frozen=True)
class Features:
    """What the bubblewrap of this machine can do here. `problem` says why it does not work."""

    works: bool
    problem: str = ""
    program: str = ""
    version: str = ""
    users: tuple[str, ...] = ()
    """options for a user namespace; empty where root does without one"""
    sized: bool = False
    """whether folders in memory can be given a size"""

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
    text = process.run([program, "--help"], timeout_s=_PROBE_S).output
    version = process.run([program, "--version"], timeout_s=_PROBE_S).output.strip()
    if "--info-fd" not in text or "--cap-drop" not in text or "--block-fd" not in text:
        return Features(False, f"{version} is too old: it lacks --info-fd, --cap-drop or --block-fd")
    found = Features(True, "", program, version, sized="--size BYTES" in text)
    ways: list[tuple[str, ...]] = [(*_USER, "--disable-userns")] if "--disable-userns" in text else []
    ways += [_USER, ()] if os.geteuid() == 0 else [_USER]
    problem = ""
    for way in ways:
        tried = replace(found, users=way)
        done = process.run([program, *_try_out(tried)], timeout_s=_PROBE_S, env={})
        if done.ok:
            return tried
        problem = problem or done.output.strip()
    return Features(False, f"{version} cannot make a box here: {problem}")


def _try_out(found: Features) -> list[str]:
    """Options and command of a box that does nothing."""
    fill = [option for mount in view.in_order(view.system_mounts()) for option in _mount(mount, found)]
    return [*_options(found), *fill, *_proc(), "--dev", "/dev", "--", "/bin/sh", "-c", ":"]


def _options(found: Features) -> list[str]:
    return [*found.users, *_NAMESPACES, *_CONDUCT]


def _mount(mount: Mount, found: Features, most_bytes: int = SCRATCH_BYTES) -> list[str]:
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


def _proc() -> list[str]:
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


def _devices(found: Features, device: bool, most_bytes: int) -> list[str]:
    options = ["--dev", "/dev"]
    if device:
        for path in view.device_files():
            options += ["--dev-bind", path, path]
    options += [*_mount(Mount(Way.SCRATCH, "/dev/shm"), found, most_bytes), "--remount-ro", "/dev"]
    # AMD's and NVIDIA's libraries read the topology in /sys; otherwise the processors are enough.
    shown = "/sys" if device else "/sys/devices/system"
    options += ["--ro-bind-try", shown, shown]
    return [*options, *(["--tmpfs", "/sys/fs", "--remount-ro", "/sys/fs"] if device else [])]


class BubblewrapBox:
    """See `arena.agents.box.Box`."""

    workspace, home, tools = WORKSPACE, HOME, TOOLS

    def __init__(self, plan: BoxPlan, found: Features) -> None:
        self._plan, self._found = plan, found
        self._stack = ExitStack()
        self._support = Path(self._stack.enter_context(scratch("box")))
        self._started: list[Confined] = []
        try:
            self._outlet = self._stack.enter_context(Outlet(plan.network, self._support / "net", OUTLET))
            self._mounts = view.in_order(self._all_mounts())
        except BaseException:
            self._stack.close()
            raise
        self.isolation = f"bubblewrap+network={'allow-list' if plan.network else 'none'}"
        self.isolation += "+device" if plan.device else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            for boxed in self._started:
                boxed.close()
        finally:
            self._stack.close()

    @property
    def refused(self) -> Mapping[str, int]:
        """See `arena.agents.box.Box`."""
        return self._outlet.refused

    def start(
        self, command: Sequence[str], stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> Confined:
        """See `arena.agents.box.Box`."""
        variables = {**self._plan.environment, **(environment or {}), **self._variables()}
        self._check_program(command[0], variables["PATH"])
        recipe = Recipe(
            program=self._found.program,
            options=(*self._arguments(), *_set_variables(variables)),
            command=(*self._outlet.first, *command),
            folders=(self._plan.workspace, self._plan.home),
            file_bytes=self._plan.file_bytes,
            processes=self._plan.processes,
            nested="--disable-userns" not in self._found.users,
        )
        boxed = launch(recipe, stdin)
        self._started.append(boxed)
        if boxed.frozen_as_group and "freezer" not in self.isolation:
            self.isolation += "+freezer"
        return boxed

    def _variables(self) -> dict[str, str]:
        return {
            "HOME": HOME,
            "USER": "agent",
            "LOGNAME": "agent",
            "SHELL": "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh",
            "TMPDIR": "/tmp",
            "PATH": view.search_path(self._plan.show, self._mounts),
            "ARENA_TOOLS": TOOLS,
            **self._outlet.variables,
        }

    def _all_mounts(self) -> list[Mount]:
        plan = self._plan
        shown = view.system_mounts() + view.shown_mounts((*view.interpreter_folders(), *plan.show))
        return [
            *shown,
            *view.hiding_mounts((*view.package_folders(), *plan.hide), shown),
            *self._etc(),
            Mount(Way.SCRATCH, "/tmp"),
            Mount(Way.LINK, "/var/tmp", "/tmp"),
            Mount(Way.WRITABLE, WORKSPACE, str(plan.workspace)),
            Mount(Way.WRITABLE, HOME, str(plan.home)),
            Mount(Way.READ_ONLY, TOOLS, str(plan.tools)),
            Mount(Way.READ_ONLY, OUTLET, str(self._support / "net")),
        ]

    def _etc(self) -> list[Mount]:
        """Files of /etc that are made for the box: who its user is, and no host but itself."""
        mounts = []
        for name, text in (("passwd", _PASSWD), ("group", _GROUP), ("hosts", _HOSTS)):
            file = self._support / name
            file.write_text(text, encoding="ascii")
            mounts.append(Mount(Way.READ_ONLY, f"/etc/{name}", str(file)))
        return mounts

    def _arguments(self) -> list[str]:
        options = _options(self._found)
        for mount in self._mounts:
            options += _mount(mount, self._found, self._plan.disk_bytes)
        options += [*_proc(), *_devices(self._found, self._plan.device, self._plan.disk_bytes)]
        for mount in reversed(self._mounts):
            options += ["--remount-ro", mount.place] if mount.way is Way.EMPTY else []
        return [*options, "--dir", "/root", "--remount-ro", "/", "--chdir", WORKSPACE]

    def _check_program(self, name: str, path: str) -> None:
        """Raise `FileNotFoundError` where the box has no such program."""
        own = {WORKSPACE: self._plan.workspace, HOME: self._plan.home, TOOLS: self._plan.tools}
        candidates = [name] if "/" in name else [f"{folder}/{name}" for folder in path.split(os.pathsep)]
        for candidate in candidates:
            place = Path(WORKSPACE, candidate)
            holder = next((inside for inside in own if place.is_relative_to(inside)), None)
            outside = own[holder] / place.relative_to(holder) if holder else place
            if os.access(outside, os.X_OK) and (holder or view.is_shown(str(place), self._mounts)):
                return
        raise FileNotFoundError(f"{name}: no such program in the box; `show` the folder in which it is installed")


def _set_variables(variables: Mapping[str, str]) -> list[str]:
    return [option for name, value in variables.items() for option in ("--setenv", name, value)]
