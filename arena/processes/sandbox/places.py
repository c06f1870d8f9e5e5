"""List the files that untrusted programs need: the system's, the interpreter's, of devices, and their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from arena.package import PACKAGE, other_copies
from arena.processes.sandbox import landlock, visible
from arena.processes.sandbox.landlock import Allowed
from arena.processes.sandbox.mounts import SHARED_MEMORY

_ETC = (*visible.ETC, "passwd", "group", "hosts", "nvidia", "machine-id")
_KERNEL = ("/proc", "/sys", "/run/opengl-driver")
_ROOTS = ("CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "HIP_PATH", "LD_LIBRARY_PATH")
PLAIN_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "shm"))
"""those of every machine, with the memory that processes share by name"""
_INSTALLED = ("site-packages", "dist-packages")
_TEGRA = ("nvhost*", "nvmap", "nvgpu*", "nvsciipc")


def system() -> tuple[str, ...]:
    """Return what every program may read: programs, libraries, their settings, and what the kernel tells."""
    return (*visible.SYSTEM, *(f"/etc/{name}" for name in _ETC), *_KERNEL)


def toolchains() -> tuple[str, ...]:
    """Python with its libraries, compilers among them, and the SDKs that the environment names."""
    named = [part for name in _ROOTS for part in os.environ.get(name, "").split(os.pathsep)]
    return (*map(str, visible.interpreter_folders()), *(part for part in named if part))


def devices(*, gpus: bool = True) -> tuple[str, ...]:
    """Device files, those of `gpus` among them, whose libraries also use the memory that processes share by name."""
    if not gpus:
        return PLAIN_DEVICES
    tegra = [str(path) for pattern in _TEGRA for path in Path("/dev").glob(pattern)]
    return (*PLAIN_DEVICES, *visible.device_files(), *tegra)


def for_python_worker(
    own: Sequence[str], readable: Sequence[str], hidden: Sequence[str], level: str = "", *, gpus: bool = True
) -> Allowed:
    """Return the files for a worker of Python: `own` folders for writing, and what it and its kernels need.

    Without `gpus` it may open none, whatever it says to their drivers: one that compiles runs beside what is measured.
    /dev/shm is among them where `level` says that it is its own; else only where a GPU's libraries may need it.
    Of the checkout that the harness runs from only the package itself: its history holds every held-out case.
    """
    package = str(PACKAGE)
    shown = landlock.without((*system(), *toolchains(), *_import_folders(), package, *readable), hidden)
    return _allowed(own, shown, hidden, level, gpus=gpus)


def for_native_worker(own: Sequence[str], readable: Sequence[str], hidden: Sequence[str], level: str = "") -> Allowed:
    """Return the files for a worker without Python: as for any other, but nothing of Python's or PyTorch's.

    What is installed for Python below a folder of the system's is left out of it, unless it is named: ROCm's libraries
    may lie there.
    """
    modules = [folder for folder in _import_folders() if Path(folder).name in _INSTALLED]
    named = [part for name in _ROOTS for part in os.environ.get(name, "").split(os.pathsep) if part]
    shown = landlock.without((*system(), *named), (*hidden, *modules))
    wanted = landlock.without(readable, hidden)
    both = Allowed(read=(*shown.read, *wanted.read), listed=(*shown.listed, *wanted.listed))
    return _allowed(own, both, hidden, level)


def _allowed(own: Sequence[str], shown: Allowed, hidden: Sequence[str], level: str, *, gpus: bool = True) -> Allowed:
    """Return what is shown for reading; for writing its own folders, devices, and the names of its threads."""
    shared = "read-only" in level.split("+") or (gpus and bool(visible.device_files()))
    write = (*own, *(path for path in devices(gpus=gpus) if shared or path != SHARED_MEMORY), "/proc/self/task")
    emptied = _emptied(hidden) if "mount" in level.split("+") else ()
    return Allowed(read=shown.read, write=write, listed=(*shown.listed, *emptied))


def _import_folders() -> list[str]:
    """Return the folders of modules, but for one around the package that holds more than modules: a checkout.

    A checkout of another copy, which is installed while this one runs, is left out too.
    """
    entries = [Path(entry).resolve() for entry in sys.path if entry]
    packages = (PACKAGE, *other_copies())
    return [
        str(entry)
        for entry in entries
        if entry.exists() and (entry.name in _INSTALLED or not any(copy.is_relative_to(entry) for copy in packages))
    ]


def _emptied(hidden: Sequence[str]) -> list[str]:
    """Hidden folders that are empty in this view: seeing that is no harm, and clearer than a refusal."""
    found = []
    for folder in hidden:
        with suppress(OSError):  # not there, or not for us to list
            found += [] if os.listdir(folder) else [folder]  # noqa: PTH208
    return found
