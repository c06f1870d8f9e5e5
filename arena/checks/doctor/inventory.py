"""The things that `arena doctor` looks for: a row for each thing that a machine has or lacks.

`python -m arena.checks.doctor.inventory FILE` writes the rows down, for a process that must not open a device itself.
"""

from __future__ import annotations

import importlib.util
import os
import platform as host_platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from arena.checks.doctor.children import write_down
from arena.extras import install_command

if TYPE_CHECKING:
    from arena.platforms.cross.compilers import Ability
    from arena.processes.sandbox.escape import Escape

_LANGUAGES = {"hip": "HIP", "triton": "Triton"}
_VENDORS = {"amd": "AMD", "nvidia": "NVIDIA"}


@dataclass(frozen=True)
class Check:
    """One thing this machine has or lacks. `cost`: what does not work without it, and how to get it."""

    name: str
    present: bool
    found: str
    cost: str = ""
    needed: bool = False


def all_checks() -> tuple[Check, ...]:
    """Every row, in the order in which they are shown."""
    return (*_libraries(), *_devices(), *_compilers(), *_targets(), *_isolation(), *_places())


def _libraries() -> Iterator[Check]:
    yield Check("python", True, host_platform.python_version())
    cpu = install_command("cpu")
    costs = {
        "torch": f"nothing can be evaluated; install PyTorch for your platform, or `{cpu}`",
        "triton": f"no triton2triton task can be evaluated; `{cpu}`",
        "ml_dtypes": f"no triton2triton task on the CPU platform; `{cpu}`",
    }
    for name, cost in costs.items():
        found = _version(name)
        yield Check(name, bool(found), found, cost, needed=name == "torch")


def _devices() -> Iterator[Check]:
    from arena.platforms import detect, platform
    from arena.platforms.condition import warnings_before
    from arena.platforms.rocm.hip_python import ask_hip

    warnings = warnings_before("auto")  # before this process opens a device itself
    yield Check("cpu platform", True, platform("cpu").facts().name)
    if importlib.util.find_spec("torch") is None:
        return
    best = detect()
    for name, what in (("cuda", "an NVIDIA GPU and a CUDA build of torch"), ("rocm", "an AMD GPU and a ROCm build")):
        if best == name:
            device = platform(name)
            facts = device.facts()
            peaks = f"peaks: {facts.peak_source}" if facts.peak_source else "peaks unknown: no roofline"
            remarks = "".join(f"; {remark}" for remark in device.remarks())
            yield Check(f"{name} platform", True, f"{facts.name} ({facts.arch}), {peaks}{remarks}")
        else:
            yield Check(f"{name} platform", False, "no device", f"nothing is measured on {name}; it needs {what}")
    if best != "cpu":
        yield of_warnings(warnings)
    answer = ask_hip()
    cost = f"facts of AMD devices come from PyTorch alone; `{install_command('rocm')}`, and libamdhip64"
    yield Check("hip-python", answer.devices > 0, answer.detail, cost)


def of_warnings(warnings: Sequence[str]) -> Check:
    """Return the row about other processes, clocks and temperature of the first GPU."""
    return Check("condition of the GPU", not warnings, "" if warnings else "no warning", "; ".join(warnings))


def _compilers() -> Iterator[Check]:
    """The compilers of what runs here; what else this machine can build for are rows of their own."""
    from arena.platforms.toolchains.hip_compilers import find

    costs = {"cpu": "no HIP task runs on cpu", "nvidia": "no HIP task runs on cuda", "amd": "no HIP task runs on rocm"}
    for compiler in find():
        where = str(compiler.path or "")
        cost = f"{costs[compiler.vendor]}; package {compiler.package}"
        yield Check(f"{compiler.program} ({compiler.vendor})", not compiler.missing, where, cost)
    boost = Path("/usr/include/boost/context/detail/fcontext.hpp")
    yield Check("Boost.Context", boost.is_file(), str(boost.parent), "no HIP on cpu; package libboost-context-dev")


def _targets() -> Iterator[Check]:
    from arena.platforms.cross.compilers import abilities

    for ability in abilities():
        yield of_ability(ability)


def of_ability(ability: Ability) -> Check:
    """For which GPUs of a vendor one language can be compiled here, whether they are here or not."""
    vendor = _VENDORS[ability.vendor]
    name = f"{_LANGUAGES[ability.language]} for {vendor} GPUs"
    found = f"can compile for: {', '.join(ability.targets)} ({ability.tools})" if ability.able else ""
    cost = f"`--targets` cannot check {vendor} GPUs; {ability.missing}"
    return Check(name, ability.able, found, cost)


def _isolation() -> Iterator[Check]:
    from arena.agents.box import probe
    from arena.platforms import shares_by_socket
    from arena.processes.sandbox import compiling, network
    from arena.processes.sandbox.escape import attempt_escape
    from arena.processes.sandbox.namespaces import NO_INET

    tried = attempt_escape(shared=network.wanted(shares_by_socket("auto")))
    alone = "the filter alone keeps candidates from" if NO_INET in tried.level else "candidates can reach"
    for wall, name, cost in (
        ("network", "network namespace", f"{alone} the network; allow user namespaces or run as root"),
        ("mount", "mount namespace", "task folders are hidden by Landlock alone; allow user namespaces or run as root"),
        ("landlock", "Landlock", "candidates can read other files; Linux 5.13 or newer, with landlock in lsm="),
        ("seccomp", "system call filter", "candidates can trace and signal; Linux with seccomp, x86-64 or aarch64"),
    ):
        yield Check(name, wall in tried.level, tried.level, cost)
    yield of_escape(tried)
    compilers = compiling.level()
    cost = "a source can have its compiler read any file; package bubblewrap, or a kernel with Landlock"
    yield Check("sandbox of compilers", compilers.startswith("bubblewrap") or "landlock" in compilers, compilers, cost)
    box = probe()
    cost = "coding agents work in a weaker sandbox; package bubblewrap, and user namespaces must be allowed"
    yield Check("box for agents", box.startswith("bubblewrap"), box, cost)


def of_escape(tried: Escape) -> Check:
    """Return what a process in a worker's sandbox could do all the same."""
    out = "; ".join(attempt.what for attempt in tried.open)
    found = f"{len(tried.attempts) - len(tried.open)} of {len(tried.attempts)} attempts refused"
    return Check(
        "escape from a worker", not tried.open, found, f"a candidate can: {out}; see docs/develop/isolation.md"
    )


def _places() -> Iterator[Check]:
    from arena.platforms.toolchains.hip_build import default_cache_root

    cache = default_cache_root().parent
    nearest = next(folder for folder in (cache, *cache.parents) if folder.exists())
    writable = os.access(nearest, os.W_OK)
    yield Check("cache folder", writable, str(cache), "builds are not kept; set XDG_CACHE_HOME", needed=True)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    write_down(Path(sys.argv[1]), all_checks())
