"""A command under bubblewrap: how it is launched, with its limits set before it begins."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from arena.agents.box import processes
from arena.agents.box.confined import Confined
from arena.errors import InfrastructureError
from arena.processes.process_table import descendants
from arena.processes.sandbox.bubblewrap import filter_file
from arena.processes.sandbox.cgroup import ControlGroup
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
            said = monitor.stderr.read().decode("utf-8", errors="replace").strip()
            raise InfrastructureError(f"bubblewrap cannot open a box: {said or 'it says nothing'}")
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
