"""Compilers in a sandbox: no network, and no file to be seen but the system's, the toolchain's and the build's own.

A source can have a compiler read any file that it can open (`#include`, `#embed`, `.incbin`), and quote it in an error.
bubblewrap where it works; else namespaces with Landlock and the filter, put up by `arena.processes.sandbox.launch`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from arena.package import PACKAGE, own_folders
from arena.processes import process
from arena.processes.sandbox import bubblewrap, confinement, landlock, places, visible
from arena.processes.sandbox.bubblewrap import Features
from arena.processes.sandbox.visible import Mount, Way

_SCRATCH_BYTES = 1 << 28
_OPTION = re.compile(r"^(?:-[A-Za-z]|-[\w-]+=)?(?P<path>/.+)$")
_PROBE_S = 20.0


def run_confined(
    command: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    memory_bytes: int | None = None,
    file_bytes: int | None = None,
) -> process.Finished:
    """Run a compiler as `arena.processes.process.run` does, in the strongest sandbox available.

    It may write below the folder that `cwd` and TMPDIR share, and read what stands on its own command line, which the
    harness has written, besides. `cwd` must be given.
    """
    assert cwd is not None
    environment = dict(env or {})
    folder = Path(os.path.commonpath([cwd.resolve(), Path(environment.get("TMPDIR", cwd)).resolve()]))
    if confinement.is_basic():
        return process.run(
            command, timeout_s=timeout_s, cwd=cwd, env=env, memory_bytes=memory_bytes, file_bytes=file_bytes
        )
    found = bubblewrap.features()
    parts = [str(part) for part in command]
    filtering = bubblewrap.filter_file() if found.works and found.filters else None
    try:
        if found.works:
            line, passed = _bubbled(found, parts, folder, cwd.resolve(), filtering), environment
        else:
            line, passed = _launched(parts, folder, environment), {}
        files = () if filtering is None else (filtering,)
        return process.run(
            line,
            timeout_s=timeout_s,
            cwd=cwd,
            env=passed,
            pass_fds=files,
            memory_bytes=memory_bytes,
            file_bytes=file_bytes,
        )
    finally:
        if filtering is not None:
            os.close(filtering)


def level() -> str:
    """The sandbox of compilers here, as records say it; found out by starting something."""
    if confinement.is_basic():
        return "none"
    found = bubblewrap.features()
    if found.works:
        return "bubblewrap+seccomp" if found.filters else "bubblewrap"
    return _launched_level()


@cache
def _launched_level() -> str:
    said = process.run(_launched([], Path("/"), {}), timeout_s=_PROBE_S, env={})
    return said.output.strip() if said.ok else "none"


def _bubbled(found: Features, command: list[str], folder: Path, cwd: Path, filtering: int | None) -> list[str]:
    line = [found.program, *bubblewrap.options(found), "--proc", "/proc", "--dev", "/dev"]
    for mount in visible.in_order(_mounts(command, folder)):
        line += bubblewrap.mount_options(mount, found, _SCRATCH_BYTES)
    line += ["--remount-ro", "/", "--chdir", str(cwd)]
    line += [] if filtering is None else ["--seccomp", str(filtering)]
    return [*line, "--", *command]


def _mounts(command: Sequence[str], folder: Path) -> list[Mount]:
    tools = visible.shown_mounts(map(Path, places.toolchains()))
    common = [*visible.system_mounts(), *tools, *visible.hiding_mounts(own_folders(), tools)]
    ordered = visible.in_order(common)
    own = [place for place in _named(command) if not Path(place).is_relative_to(folder)]
    return [
        *common,
        *(Mount(Way.READ_ONLY, place, place) for place in own if not visible.is_shown(place, ordered)),
        Mount(Way.SCRATCH, "/tmp"),
        Mount(Way.WRITABLE, str(folder), str(folder)),
    ]


def _launched(command: list[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
    named = _named(command)
    readable = (*places.system(), *places.toolchains(), *named)
    # Rules allow what they name: a checkout around the toolchain is not shown, and need not be hidden.
    ours = [one for one in own_folders() if not any(Path(path).is_relative_to(one) for path in readable)]
    shown = landlock.without(readable, list(map(str, ours)))
    order = {
        "command": command,
        "environment": dict(environment),
        "read": [*shown.read, *(path for path in named if _is_of_the_package(Path(path)))],
        "listed": shown.listed,
        "write": [str(folder), "/dev/null", "/dev/zero"] if command else [],
    }
    return [sys.executable, "-I", "-S", "-c", _START, str(PACKAGE.parent), json.dumps(order)]


_START = "import sys; sys.path.append(sys.argv[1]); from arena.processes.sandbox.launch import main; main(sys.argv[2])"


def _named(command: Iterable[str]) -> list[str]:
    """Files and folders on a command line, with what a program's and a source's own folder hold."""
    found: list[str] = []
    for index, part in enumerate(command):
        match = _OPTION.match(part)
        path = Path(match["path"]) if match else None
        if path is None or not path.exists():
            continue
        real = path.resolve()
        found += [str(path), str(real)]
        if index == 0 and real.parent.name == "bin" and real.parents[1] != Path("/"):
            found.append(str(real.parents[1]))
        if real.is_file() and _is_of_the_package(real):
            found.append(str(real.parent))
    return list(dict.fromkeys(found))


def _is_of_the_package(path: Path) -> bool:
    return path.resolve().is_relative_to(PACKAGE)
