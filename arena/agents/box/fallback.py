"""The box where bubblewrap is missing or does not work: weaker, and its level says what is in force.

    fallback:session                 new session, no new privileges, limits on files and processes; daemons are ended
    …+network                        no network but the proxy; without it the network is open, and no proxy is offered
    …+mount                          the project, the runs, the home folder are hidden
    …+read-only                      nothing but workspace and home can be written
    …+user                           runs as `nobody` (where the harness is root): cannot signal or trace the harness
    …+landlockN                      only the system, the interpreter, what is shown and its folders can be opened
    …+seccomp                        no tracing, no mounting, no new namespaces: `arena.processes.sandbox.seccomp`
    …+freezer                        a pause is the kernel's freezer

What it cannot do: paths are those of this machine, other processes and their command lines are visible, /tmp and /etc
are those of everybody (scratch files go to TMPDIR, in the home), and single files of a hidden folder that also holds
what must be seen stay visible. Without `user` the agent may send signals to the harness; without `mount` it sees every
file that its user may read, held-out cases included, unless Landlock is in force, which then takes the place of `mount`
and of `read-only`. As root it is always `nobody`, and can only run what `nobody` may read: where the harness' Python is
not among that, `python3` and `python` are the system's, without PyTorch and Triton.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from arena.agents.box import BoxPlan, processes
from arena.agents.box.confined import Confined
from arena.agents.box.opened import Opened
from arena.agents.box.outlet import Outlet
from arena.agents.box.supervise import Order
from arena.errors import InfrastructureError
from arena.package import own_folders
from arena.processes.process_table import descendants
from arena.processes.python_child import python_environment, python_module
from arena.processes.sandbox import confinement, visible
from arena.processes.sandbox.cgroup import ControlGroup
from arena.processes.scratch import in_memory, scratch

NOBODY = 65534
_KEPT = ("PYTHONPATH", confinement.SWITCH)
"""what the supervisor gets of our environment"""


@cache
def describe() -> str:
    """One sentence for a person: which level can be had here."""
    with scratch("probe") as name:
        folders = [Path(name, part) for part in ("workspace", "home", "tools")]
        for folder in folders:
            folder.mkdir()
        plan = BoxPlan(workspace=folders[0], home=folders[1], tools=folders[2])
        with FallbackBox(plan) as box:
            box.start(["/bin/sh", "-c", ":"])
            return box.isolation


def around(hidden: Iterable[Path], needed: Sequence[Path]) -> list[Path]:
    """Folders to hide such that of `hidden` only the ways to `needed` stay; links are not followed."""
    found: list[Path] = []
    waiting = [folder.resolve() for folder in hidden]
    while waiting:
        folder = waiting.pop()
        # What we may not enter, the agent may not either, and nothing can be mounted there.
        if folder in needed or not os.access(folder, os.X_OK) or folder.is_symlink() or not folder.is_dir():
            continue
        if any(need.is_relative_to(folder) for need in needed):
            with suppress(OSError):
                waiting += list(folder.iterdir())
        else:
            found.append(folder)
    return [folder for folder in dict.fromkeys(found) if not set(folder.parents) & set(found)]


class FallbackBox(Opened):
    """See `arena.agents.box.Box`."""

    def __init__(self, plan: BoxPlan) -> None:
        super().__init__(plan)
        self.workspace, self.home, self.tools = (
            str(path.resolve()) for path in (plan.workspace, plan.home, plan.tools)
        )
        self.isolation = "fallback"
        self._user = NOBODY if os.geteuid() == 0 else os.geteuid()
        try:
            self._temporary = plan.home / ".tmp"
            self._temporary.mkdir(exist_ok=True)
            self._programs = self._pythons(self._python())
            place = self._support / "net"
            self._outlet = self._stack.enter_context(Outlet(plan.network, place, str(place), self._python()))
        except BaseException:
            self._stack.close()
            raise

    def start(
        self, command: Sequence[str], stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> Confined:
        """See `arena.agents.box.Box`."""
        path = self._search_path()
        if shutil.which(command[0], path=path) is None:
            raise FileNotFoundError(f"{command[0]}: no such program")
        if self._user != os.geteuid():
            self._hand_over()
        report, reporter = os.pipe()
        wait, go = os.pipe()
        order = self._order(command, {**self._plan.environment, **(environment or {})}, path, (reporter, wait))
        try:
            supervisor = self._supervisor(order, stdin)
        finally:
            os.close(reporter)
            os.close(wait)
        with open(report, "rb") as reported, open(go, "wb", buffering=0) as begin:  # noqa: PTH123
            level = reported.readline().decode().strip()
            boxed = self._confine(supervisor, level)
            self._started.append(boxed)
            with suppress(BrokenPipeError):
                begin.write(b"\n")
            problem = reported.read().decode("utf-8", errors="replace")
        self._check(boxed, level, problem)
        network = f"network={'allow-list' if self._plan.network else 'none'}"
        level = level.replace("network", network)
        self.isolation = f"fallback:{level}{'+freezer' if boxed.frozen_as_group else ''}"
        return boxed

    def _check(self, boxed: Confined, level: str, problem: str) -> None:
        if problem or not level:
            boxed.kill()
            why = problem or boxed.stderr.read().decode("utf-8", errors="replace").strip()
            raise InfrastructureError(
                f"the agent cannot start in the box without bubblewrap: {why}; install bubblewrap"
            )

    def _order(
        self, command: Sequence[str], environment: Mapping[str, str], path: str, pipes: tuple[int, int]
    ) -> Order:
        plan = self._plan
        places = (plan.workspace, plan.home, plan.tools, self._support)
        needed = [folder.resolve() for folder in (*places, *visible.interpreter_folders(), *plan.show)]
        homes = [] if Path.home() == Path("/") else [Path.home()]
        own = {"HOME": self.home, "PATH": path, "TMPDIR": str(self._temporary), "ARENA_TOOLS": self.tools}
        return Order(
            command=list(command),
            relay=list(self._outlet.first),
            environment={**environment, **own},
            proxy=self._outlet.variables,
            folder=self.workspace,
            writable=[self.workspace, self.home],
            readable=[str(one) for one in needed],
            device=plan.device,
            hide=[str(one) for one in around((*own_folders(), *plan.hide, *homes), needed)],
            file_bytes=plan.file_bytes,
            processes=plan.processes,
            user=self._user,
            groups=sorted({Path(file).stat().st_gid for file in visible.device_files()} - {0}) if plan.device else [],
            report=pipes[0],
            go=pipes[1],
        )

    def _supervisor(self, order: Order, stdin: bytes) -> subprocess.Popen[bytes]:
        written, given = in_memory("order", order.written()), in_memory("stdin", stdin)
        try:
            return subprocess.Popen(
                python_module("arena.agents.box.supervise", str(written)),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(written, order.report, order.go),
                cwd="/",
                env=python_environment({name: os.environ[name] for name in _KEPT if name in os.environ}),
                start_new_session=True,
            )
        finally:
            os.close(written)
            os.close(given)

    def _confine(self, supervisor: subprocess.Popen[bytes], level: str) -> Confined:
        """Know the agent's processes by their descent, and by a namespace that no process of ours is in."""
        first = next(iter(descendants(supervisor.pid) - {supervisor.pid}), 0)
        kind = "mnt" if "mount" in level else "net" if "network" in level else ""
        namespace: processes.Namespace | None = None
        with suppress(OSError):
            namespace = processes.Namespace(first, kind) if first and kind else None

        def members() -> set[int]:
            found = descendants(supervisor.pid) - {supervisor.pid}
            return found | (namespace.members() if namespace is not None else set())

        group = ControlGroup.hold(first, self._plan.processes) if first else None
        return Confined(supervisor, members, (self._plan.workspace, self._plan.home), group)

    def _python(self) -> str:
        """A Python that the agent's user may run: ours, or the system's."""
        python = Path(sys.executable).resolve()
        if self._user == os.geteuid() or all(folder.stat().st_mode & 0o001 for folder in (python, *python.parents)):
            return sys.executable
        return shutil.which("python3", path=os.pathsep.join(visible.STANDARD_PATH)) or sys.executable

    def _search_path(self) -> str:
        folders = [folder for shown in self._plan.show for folder in (shown / "bin", shown / "node_modules" / ".bin")]
        entries = [str(folder) for folder in (self._programs, *folders, Path(sys.prefix, "bin")) if folder.is_dir()]
        return os.pathsep.join(
            dict.fromkeys([*entries, *os.environ.get("PATH", "").split(os.pathsep), *visible.STANDARD_PATH])
        )

    def _hand_over(self) -> None:
        """Give the agent's folders to the user that it runs as, and let that user pass the temporary folders above."""
        plan = self._plan
        for top in (plan.workspace, plan.home):
            for inside in (top, *top.rglob("*")):
                os.chown(inside, self._user, self._user, follow_symlinks=False)
        for place in (plan.workspace, plan.home, plan.tools, self._support):
            for above in (place.resolve(), *place.resolve().parents):
                if above.stat().st_uid == os.geteuid() and above.name.startswith("arena-"):
                    above.chmod(above.stat().st_mode | 0o011)
        for shared in (plan.tools, self._support / "net", self._programs):
            for inside in (shared, *shared.rglob("*")):
                inside.chmod(
                    inside.stat().st_mode | (0o066 if inside.is_socket() else 0o055 if inside.is_dir() else 0o044)
                )
