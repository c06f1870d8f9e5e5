"""Which files untrusted programs need: those of the system, of the interpreter, of devices, and their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from arena.sandbox import landlock, view
from arena.sandbox.landlock import Allowed

_ETC = (*view.ETC, "passwd", "group", "hosts", "nvidia", "machine-id")
_KERNEL = ("/proc", "/sys", "/run/opengl-driver")
_ROOTS = ("CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "HIP_PATH", "LD_LIBRARY_PATH")
PLAIN_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "shm"))
"""those of every machine, with the memory that processes share by name"""
_INSTALLED = ("site-packages", "dist-packages")
_TEGRA = ("nvhost*", "nvmap", "nvgpu*", "nvsciipc")


def system() -> tuple[str, ...]:
    """What every program may read: programs, libraries, their settings, and what the kernel tells."""
    return (*view.SYSTEM, *(f"/etc/{name}" for name in _ETC), *_KERNEL)


def toolchains() -> tuple[str, ...]:
    """Python with its libraries, compilers among them, and the SDKs that the environment names."""
    named = [part for name in _ROOTS for part in os.environ.get(name, "").split(os.pathsep)]
    return (*map(str, view.interpreter_folders()), *(part for part in named if part))


def devices() -> tuple[str, ...]:
    """Device files, GPUs among them, whose libraries also use the memory that processes share by name."""
    tegra = [str(path) for pattern in _TEGRA for path in Path("/dev").glob(pattern)]
    return (*PLAIN_DEVICES, *view.device_files(), *tegra)


def for_host(own: Sequence[str], readable: Sequence[str], hidden: Sequence[str]) -> Allowed:
    """What a host may open: `own` folders for writing, those it is handed, and what any kernel in Python needs.

    Of the checkout that the harness runs from only the package itself: its history holds every held-out case.
    """
    package = str(view.package_folders()[0])
    shown = landlock.without((*system(), *toolchains(), *_import_folders(), package, *readable), hidden)
    # The names of its threads are files in there.
    write = (*own, *devices(), "/proc/self/task")
    return Allowed(read=shown.read, write=write, listed=(*shown.listed, *_emptied(hidden)))


def _import_folders() -> list[str]:
    """Where modules are imported from, but for a folder around the package that holds more than modules: a checkout."""
    package = view.package_folders()[0]
    entries = [Path(entry).resolve() for entry in sys.path if entry]
    return [
        str(entry)
        for entry in entries
        if entry.exists() and (entry.name in _INSTALLED or not package.is_relative_to(entry))
    ]


def _emptied(hidden: Sequence[str]) -> list[str]:
    """Hidden folders behind which there is nothing any more: seeing that is no harm, and clearer than a refusal."""
    found = []
    for folder in hidden:
        with suppress(OSError):  # not there, or not for us to list
            found += [] if os.listdir(folder) else [folder]  # noqa: PTH208
    return found
