"""What clang takes for a ROCm installation where there is none: headers and device libraries, in one folder.

For compiling only. Nothing that was built against it is ever run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from pathlib import Path

from arena.errors import InfrastructureError
from arena.toolchains import hip_headers
from arena.toolchains.build_cache import BuildCache, content_key
from arena.toolchains.hip_build import folder_texts
from arena.toolchains.targets import TARGETS

LIBRARIES_PACKAGE = "rocm-device-libs"
_LIBRARY_FOLDERS = (
    "usr/lib/*/amdgcn/bitcode",
    "opt/rocm*/amdgcn/bitcode",
    "opt/rocm*/lib/llvm/lib/clang/*/amdgcn/bitcode",
)
_ISA = "oclc_isa_version_"
_FP8 = "hip/hip_fp8.h"
# HIP 6.2 has 8-bit floats of one kind only (fnuz); the names of the other (OCP) came later. For compiling either will
# do, but gfx942 converts fnuz in hardware and OCP in software: a kernel may seem to use less there than it would.
_LATER_FP8 = """
#ifndef ARENA_LATER_FP8
#define ARENA_LATER_FP8
using __hip_fp8_e4m3 = __hip_fp8_e4m3_fnuz;
using __hip_fp8_e5m2 = __hip_fp8_e5m2_fnuz;
using __hip_fp8x2_e4m3 = __hip_fp8x2_e4m3_fnuz;
using __hip_fp8x2_e5m2 = __hip_fp8x2_e5m2_fnuz;
using __hip_fp8x4_e4m3 = __hip_fp8x4_e4m3_fnuz;
using __hip_fp8x4_e5m2 = __hip_fp8x4_e5m2_fnuz;
constexpr __hip_fp8_interpretation_t __HIP_E4M3 = __HIP_E4M3_FNUZ;
constexpr __hip_fp8_interpretation_t __HIP_E5M2 = __HIP_E5M2_FNUZ;
#endif
"""


def device_libraries(root: Path = Path("/")) -> Path | None:
    """The folder of AMD's device libraries (LLVM bitcode), or None where they are not installed."""
    found = (folder for pattern in _LIBRARY_FOLDERS for folder in sorted(root.glob(pattern)))
    return next((folder for folder in found if (folder / "ockl.bc").is_file()), None)


def overlay(cache: BuildCache) -> Path:
    """The folder for `--rocm-path`, written once per content. Raises `InfrastructureError` naming what is missing."""
    libraries = device_libraries()
    if libraries is None:
        raise InfrastructureError(f"AMD's device libraries are missing: install the Debian package {LIBRARIES_PACKAGE}")
    headers = _headers()
    bitcode = _bitcode(libraries)
    sums = {name: f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for name, path in bitcode.items()}
    key = content_key(
        {**{f"header {k}": v for k, v in headers.items()}, **{f"bitcode {k}": v for k, v in sums.items()}}
    )
    entry = cache.find(key)
    if entry is not None:
        return entry
    with cache.staging() as staging:
        root = staging / "rocm"
        for name, text in {**_texts_in_include(headers), "share/hip/version": _version_file(headers)}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        folder = root / "amdgcn" / "bitcode"
        folder.mkdir(parents=True)
        for name, path in bitcode.items():
            (folder / name).symlink_to(path)
        return cache.publish(root, key)


def nearest_isa(wanted: str, present: list[str]) -> str | None:
    """Of the ISAs in `present` (`90a`, `1036`) the greatest that is not above `wanted`; None if all are above."""
    lower = [isa for isa in present if _order(isa) <= _order(wanted)]
    return max(lower, key=_order, default=None)


def _order(isa: str) -> tuple[int, int, int]:
    return int(isa[:-2]), int(isa[-2], 16), int(isa[-1], 16)


def _bitcode(libraries: Path) -> dict[str, Path]:
    """Name → file. For each target newer than the libraries, the file of the ISA before it.

    That file is one constant, the number of the ISA, by which the libraries choose between instructions: good enough
    to compile with.
    """
    files = {path.name: path for path in sorted(libraries.glob("*.bc"))}
    present = [name.removeprefix(_ISA).removesuffix(".bc") for name in files if name.startswith(_ISA)]
    for arch in (facts.arch for facts in TARGETS.values() if facts.vendor == "amd"):
        isa = arch.removeprefix("gfx")
        nearest = nearest_isa(isa, present)
        if isa not in present and nearest is not None:
            files[f"{_ISA}{isa}.bc"] = files[f"{_ISA}{nearest}.bc"]
    return files


def _headers() -> dict[str, str]:
    """The complete set, and over it the newer files of the installed Triton, which know newer compilers and GPUs."""
    complete = hip_headers.find()
    if complete is None:
        raise InfrastructureError(f"HIP headers are missing: {hip_headers.INSTALL}")
    merged = {**folder_texts(complete, ("*.h", "*.hpp")), **_of_triton()}
    if "__hip_fp8_e4m3 " not in merged.get("hip/amd_detail/amd_hip_fp8.h", ""):
        merged[_FP8] = merged.get(_FP8, "") + _LATER_FP8
    return merged


def _of_triton() -> dict[str, str]:
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        return {}
    folder = Path(found.origin).parent / "backends" / "amd" / "include"
    texts = folder_texts(folder, ("hip/**/*.h", "hip/**/*.hpp"))
    return texts if _number(texts, "MAJOR") >= 7 else {}


def _number(headers: dict[str, str], part: str) -> int:
    found = re.search(rf"define HIP_VERSION_{part} +(\d+)", headers.get("hip/hip_version.h", ""))
    return int(found[1]) if found else 0


def _version_file(headers: dict[str, str]) -> str:
    return "".join(f"HIP_VERSION_{part}={_number(headers, part)}\n" for part in ("MAJOR", "MINOR", "PATCH"))


def _texts_in_include(headers: dict[str, str]) -> dict[str, str]:
    return {f"include/{name}": text for name, text in headers.items()}
