"""The box by bubblewrap: namespaces of its own for processes, mounts, network, IPC and users, and no capability.

Root stays root for the kernel, seen as uid 1000 from inside: it is held by having no capabilities and no writable mount
of this machine, `/proc/sys` included. What stands in `BoxPlan.environment` reaches bubblewrap through a file
descriptor, so that it appears on no command line.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from arena.agents.box import BoxPlan, processes
from arena.agents.box.confined import Confined
from arena.agents.box.opened import Opened
from arena.agents.box.outlet import Outlet
from arena.errors import InfrastructureError
from arena.package import own_folders
from arena.processes.process_table import descendants
from arena.processes.sandbox import confinement, visible
from arena.processes.sandbox.bubblewrap import UID, Features, filter_file, mount_options, options, proc_options
from arena.processes.sandbox.bubblewrap import features as features
from arena.processes.sandbox.cgroup import ControlGroup
from arena.processes.sandbox.visible import Mount, Way
from arena.processes.scratch import in_memory


@dataclass(frozen=True)
class BoxRecipe:
    """What to launch. `options` go through a file descriptor, `command` on bubblewrap's command line."""

    program: str
    options: tuple[str, ...]
    command: tuple[str, ...]
    folders: tuple[Path, ...]
    """writable ones, whose contents count as disk used"""
    file_bytes: int
    processes: int
    filtered: bool
    """whether system calls are filtered"""
    nested: bool
    """whether processes can make PID namespaces of their own"""


def launch(recipe: BoxRecipe, stdin: bytes) -> Confined:
    """Start bubblewrap, and let the command begin once its limits are set. Raises `InfrastructureError`."""
    options = in_memory("options", b"".join(os.fsencode(option) + b"\0" for option in recipe.options))
    given = in_memory("stdin", stdin)
    info, tell_info = os.pipe()
    wait, go = os.pipe()
    filtering = filter_file() if recipe.filtered else None
    inherited = (options, tell_info, wait, *(() if filtering is None else (filtering,)))
    line = [recipe.program, "--args", str(options), "--info-fd", str(tell_info), "--block-fd", str(wait)]
    line += [] if filtering is None else ["--seccomp", str(filtering)]
    try:
        monitor = subprocess.Popen(
            [*line, "--", *recipe.command],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
            cwd="/",
            env={},
            start_new_session=True,
        )
    finally:
        for number in (*inherited, given):
            os.close(number)
    try:
        boxed = _confine(recipe, monitor, _first_process(info, monitor))
        os.write(go, b"\n")
        return boxed
    except BaseException:
        with monitor:  # closes its pipes
            monitor.kill()
        raise
    finally:
        os.close(info)
        os.close(go)


def _first_process(info: int, monitor: subprocess.Popen[bytes]) -> int:
    """The id of the first process of the box, as bubblewrap reports it."""
    text = b""
    while b"}" not in text:
        chunk = os.read(info, 4096)
        if not chunk:
            assert monitor.stderr is not None
            errors = monitor.stderr.read().decode("utf-8", errors="replace").strip()
            raise InfrastructureError(f"bubblewrap cannot open a box: {errors or 'it says nothing'}")
        text += chunk
    return int(json.loads(text)["child-pid"])


def _confine(recipe: BoxRecipe, monitor: subprocess.Popen[bytes], first: int) -> Confined:
    """Set limits on the first process, while it waits to begin; all others inherit them."""
    namespace = processes.Namespace(first)

    def members() -> set[int]:
        inside = namespace.members()
        return inside | descendants(first) if recipe.nested and inside else inside

    limit(first, recipe.file_bytes, recipe.processes)
    return Confined(monitor, members, recipe.folders, ControlGroup.hold(first, recipe.processes))


def limit(first: int, file_bytes: int, most_processes: int) -> None:
    """Limit a process and what it starts. One that is gone already has ended with an error of its own."""
    with suppress(ProcessLookupError):
        resource.prlimit(first, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(first, resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        if os.geteuid() != 0:  # the kernel exempts root
            hard = resource.prlimit(first, resource.RLIMIT_NPROC)[1]
            most = most_processes if hard == resource.RLIM_INFINITY else min(most_processes, hard)
            resource.prlimit(first, resource.RLIMIT_NPROC, (most, most))


WORKSPACE, HOME, TOOLS, OUTLET = "/workspace", "/home/agent", "/arena", "/run/arena"
PROGRAMS = "/run/programs"
_PASSWD = f"root:x:0:0::/root:/bin/sh\nagent:x:{UID}:{UID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
_GROUP = f"root:x:0:\nagent:x:{UID}:\nnogroup:x:65534:\n"
_HOSTS = "127.0.0.1 localhost\n::1 localhost\n"


def _devices(found: Features, device: bool, most_bytes: int) -> list[str]:
    made = ["--dev", "/dev"]
    if device:
        for path in visible.device_files():
            made += ["--dev-bind", path, path]
    made += [*mount_options(Mount(Way.SCRATCH, "/dev/shm"), found, most_bytes), "--remount-ro", "/dev"]
    # AMD's and NVIDIA's libraries read the topology in /sys; otherwise the processors are enough.
    shown = "/sys" if device else "/sys/devices/system"
    made += ["--ro-bind-try", shown, shown]
    return [*made, *(["--tmpfs", "/sys/fs", "--remount-ro", "/sys/fs"] if device else [])]


class BubblewrapBox(Opened):
    """See `arena.agents.box.Box`."""

    workspace, home, tools = WORKSPACE, HOME, TOOLS

    def __init__(self, plan: BoxPlan, found: Features) -> None:
        super().__init__(plan)
        self._found = found
        try:
            self._outlet = self._stack.enter_context(Outlet(plan.network, self._support / "net", OUTLET))
            self._programs = self._pythons(sys.executable)
            self._mounts = visible.in_order(self._all_mounts())
        except BaseException:
            self._stack.close()
            raise
        self.isolation = f"bubblewrap+network={'allow-list' if plan.network else 'none'}"
        self.isolation += "+device" if plan.device else ""
        self._filtered = found.filters and not confinement.is_basic()
        self.isolation += "+seccomp" if self._filtered else ""

    def start(
        self, command: Sequence[str], stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> Confined:
        """See `arena.agents.box.Box`."""
        variables = {**self._plan.environment, **(environment or {}), **self._variables()}
        self._check_program(command[0], variables["PATH"])
        recipe = BoxRecipe(
            program=self._found.program,
            options=(*self._arguments(), *_set_variables(variables)),
            command=(*self._outlet.first, *command),
            folders=(self._plan.workspace, self._plan.home),
            file_bytes=self._plan.file_bytes,
            processes=self._plan.processes,
            filtered=self._filtered,
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
            "PATH": f"{PROGRAMS}{os.pathsep}{visible.search_path(self._plan.show, self._mounts)}",
            "ARENA_TOOLS": TOOLS,
            **self._outlet.variables,
        }

    def _all_mounts(self) -> list[Mount]:
        plan = self._plan
        shown = visible.system_mounts() + visible.shown_mounts((*visible.interpreter_folders(), *plan.show))
        return [
            *shown,
            *visible.hiding_mounts((*own_folders(), *plan.hide), shown),
            *self._etc(),
            Mount(Way.SCRATCH, "/tmp"),
            Mount(Way.LINK, "/var/tmp", "/tmp"),
            Mount(Way.WRITABLE, WORKSPACE, str(plan.workspace)),
            Mount(Way.WRITABLE, HOME, str(plan.home)),
            Mount(Way.READ_ONLY, TOOLS, str(plan.tools)),
            Mount(Way.READ_ONLY, PROGRAMS, str(self._programs)),
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
        arguments = options(self._found)
        for mount in self._mounts:
            arguments += mount_options(mount, self._found, self._plan.disk_bytes)
        arguments += [*proc_options(), *_devices(self._found, self._plan.device, self._plan.disk_bytes)]
        for mount in reversed(self._mounts):
            arguments += ["--remount-ro", mount.place] if mount.way is Way.EMPTY else []
        return [*arguments, "--dir", "/root", "--remount-ro", "/", "--chdir", WORKSPACE]

    def _check_program(self, name: str, path: str) -> None:
        """Raise `FileNotFoundError` where the box has no such program."""
        plan = self._plan
        own = {WORKSPACE: plan.workspace, HOME: plan.home, TOOLS: plan.tools, PROGRAMS: self._programs}
        candidates = [name] if "/" in name else [f"{folder}/{name}" for folder in path.split(os.pathsep)]
        for candidate in candidates:
            place = Path(WORKSPACE, candidate)
            holder = next((inside for inside in own if place.is_relative_to(inside)), None)
            outside = own[holder] / place.relative_to(holder) if holder else place
            if os.access(outside, os.X_OK) and (holder or visible.is_shown(str(place), self._mounts)):
                return
        raise FileNotFoundError(
            f"{name}: no such program in the box; add the folder in which it is installed to the agent's `show`"
        )


def _set_variables(variables: Mapping[str, str]) -> list[str]:
    return [option for name, value in variables.items() for option in ("--setenv", name, value)]
