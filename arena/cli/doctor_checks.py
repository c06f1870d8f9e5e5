"""What `arena doctor` looks for: a row for each thing that a machine has or lacks."""

from __future__ import annotations

import importlib.util
import os
import platform as host_platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arena.toolchains.cross import Ability

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
    costs = {
        "torch": "nothing can be evaluated; install PyTorch for your platform, or `pip install kernel-arena[cpu]`",
        "triton": "no triton2triton task can be evaluated; `pip install triton`",
        "ml_dtypes": "no triton2triton task on the CPU platform; `pip install ml_dtypes`",
    }
    for name, cost in costs.items():
        found = _version(name)
        yield Check(name, bool(found), found, cost, needed=name == "torch")


def _devices() -> Iterator[Check]:
    from arena.platforms import detect, platform
    from arena.platforms.hip_python import ask_hip

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
    answer = ask_hip()
    cost = "facts of AMD devices come from PyTorch alone; `pip install kernel-arena[rocm]`, and libamdhip64"
    yield Check("hip-python", answer.devices > 0, answer.detail, cost)


def _compilers() -> Iterator[Check]:
    """The compilers of what runs here; what else this machine can build for are rows of their own."""
    from arena.toolchains.hip_compilers import find

    costs = {"cpu": "no HIP task runs on cpu", "nvidia": "no HIP task runs on cuda", "amd": "no HIP task runs on rocm"}
    for compiler in find():
        where = str(compiler.path or "")
        cost = f"{costs[compiler.vendor]}; package {compiler.package}"
        yield Check(f"{compiler.program} ({compiler.vendor})", not compiler.missing, where, cost)
    boost = Path("/usr/include/boost/context/detail/fcontext.hpp")
    yield Check("Boost.Context", boost.is_file(), str(boost.parent), "no HIP on cpu; package libboost-context-dev")


def _targets() -> Iterator[Check]:
    from arena.toolchains.cross import abilities

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

    level = _walls()
    for wall, cost in (
        ("network", "candidates can reach the network; allow user namespaces or run as root"),
        ("mount", "candidates can read task folders, held-out cases included; allow user namespaces or run as root"),
    ):
        yield Check(f"{wall} namespace", wall in level, level, cost)
    box = probe()
    cost = "coding agents work behind weaker walls; package bubblewrap, and user namespaces must be allowed"
    yield Check("box for agents", box.startswith("bubblewrap"), box, cost)


def _places() -> Iterator[Check]:
    from arena.toolchains.hip_compilers import default_cache_root

    cache = default_cache_root().parent
    nearest = next(folder for folder in (cache, *cache.parents) if folder.exists())
    writable = os.access(nearest, os.W_OK)
    yield Check("cache folder", writable, str(cache), "builds are not kept; set XDG_CACHE_HOME", needed=True)


def _walls() -> str:
    """The level a forked child gets, tried for real."""
    from arena import sandbox

    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, sandbox.enter(sandbox.Walls()).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        level = pipe.read().decode()
    os.waitpid(pid, 0)
    return level


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
