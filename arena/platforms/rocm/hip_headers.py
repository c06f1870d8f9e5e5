"""The complete HIP headers for building without ROCm: where they lie, and how to get them.

No package brings current HIP headers alone. The wheel of Triton 3.4.0 (MIT, like the headers) holds the complete set of
HIP 6.2; later ones hold a newer set without half precision, 8-bit floats and cooperative groups.
`python -m arena.platforms.rocm.hip_headers` fetches them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.processes import process
from arena.processes.python_child import python_environment, python_module

INSTALL = "python -m arena.platforms.rocm.hip_headers (tools/setup.sh does)"
_WHEEL_OF = "triton==3.4.0"
_IN_WHEEL = "triton/backends/amd/include/"
_NAME = Path("hip-6.2") / "include"
_ONE_OF_THEM = Path("hip") / "hip_cooperative_groups.h"
# The headers are the same in every wheel: one that exists is named, whichever Python is running.
_PLATFORM = (
    *("--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"),
    *("--platform", "manylinux_2_27_x86_64", "--platform", "manylinux_2_28_x86_64"),
)


def places() -> tuple[Path, ...]:
    """Where the headers may lie: in the Python environment, else below the user's cache folder."""
    return (Path(sys.prefix) / "share" / "unseen-arena" / _NAME, default_cache_root().parent / _NAME)


def find() -> Path | None:
    """The include folder that holds the complete set, or None where it was never fetched."""
    return next((folder for folder in places() if (folder / _ONE_OF_THEM).is_file()), None)


def fetch(folder: Path | None = None) -> Path:
    """Make `folder` (the first of `places` that can be written) hold the headers, and return it.

    Downloads a wheel of 150 MB unless they are there; they appear by one rename or not at all. Raises
    `InfrastructureError` without network.
    """
    folder = folder or find() or _writable()
    if (folder / _ONE_OF_THEM).is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        staged = Path(name) / "include"
        _unpack(_download(Path(name)), staged)
        try:
            staged.rename(folder)
        except OSError:
            if not (folder / _ONE_OF_THEM).is_file():  # unless another process was faster
                raise
    return folder


def _writable() -> Path:
    own, users = places()
    return own if os.access(sys.prefix, os.W_OK) else users


def _download(folder: Path) -> Path:
    pip = python_module("pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps")
    done = process.run([*pip, *_PLATFORM, "-d", str(folder), _WHEEL_OF], timeout_s=600.0, env=python_environment())
    wheels = sorted(folder.glob("*.whl"))
    if not done.ok or not wheels:
        said = done.output.strip()[-400:] or "no answer in time"
        raise InfrastructureError(f"the HIP headers could not be fetched: pip has no {_WHEEL_OF} to download: {said}")
    return wheels[0]


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = member.removeprefix(_IN_WHEEL)
            if name == member or not name.startswith("hip/") or name.endswith("/") or ".." in Path(name).parts:
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, (folder / name).open("wb") as target:
                shutil.copyfileobj(source, target)
    if not (folder / _ONE_OF_THEM).is_file():
        raise InfrastructureError(f"{wheel.name} does not hold the HIP headers that it did")


def main() -> str | None:
    """Fetch the headers; what went wrong, or None."""
    try:
        fetch()
    except (InfrastructureError, OSError) as problem:
        return str(problem)
    return None


if __name__ == "__main__":
    raise SystemExit(main())
