"""The HIP runtime library that PyTorch loads, which workers of HIP candidates load too. Used by `hip_hipcc.py`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms import built_for_hip
from arena.platforms.gpu import loaded_path
from arena.platforms.toolchains.elf import Tag, linked_names

LIBRARY = "libamdhip64"
_OPENED_LATER = ("libamd_comgr", "libhiprtc", "librocprofiler-register")
"""by the runtime itself, so that it does not list them as needed"""


@cache
def loaded_runtime() -> Path | None:
    """Return the HIP runtime library that PyTorch loads here; None where PyTorch is not built for ROCm.

    It lies in `torch/lib`, in `_rocm_sdk_core/lib` beside it, or in a ROCm of the system. PyTorch's own copy has a file
    name that no linker asks for, so a worker loads it by its path and not by a search path.
    """
    if not built_for_hip():
        return None
    import torch  # noqa: F401 - which loads the library

    return Path(loaded_path(LIBRARY))


def needed_files(runtime: Path) -> tuple[Path, ...]:
    """Return the runtime and what it needs of the folder it lies in, which in PyTorch's holds PyTorch too."""
    folders = (runtime.parent / "rocm_sysdeps" / "lib", runtime.parent)
    beside = {path.name: path for folder in folders for path in folder.glob("*.so*")}
    waiting = [runtime, *(path for name, path in beside.items() if name.startswith(_OPENED_LATER))]
    found: dict[Path, None] = {}
    while waiting:
        file = waiting.pop()
        if file not in found:
            found[file] = None
            waiting += [beside[name] for name in linked_names(file, Tag.NEEDED) if name in beside]
    return tuple(found)


def require_same_runtime(program: Path, runtime: Path, compiler: str) -> None:
    """Check that a program which loads this runtime first loads no second build of it.

    Raises:
        InfrastructureError: it asks for a runtime of another name. Handles of buffers are private to one build.
    """
    known = linked_names(runtime, Tag.SONAME)
    asked = [name for name in linked_names(program, Tag.NEEDED) if name.startswith(f"{LIBRARY}.so")]
    if asked != known:
        raise InfrastructureError(
            f"two builds of the HIP runtime: {compiler} links {', '.join(asked) or 'none'}, but PyTorch loads "
            f"{', '.join(known) or 'one without a name'} ({runtime}), and they cannot share buffers; install PyTorch "
            "and hipcc of the same release of ROCm"
        )
