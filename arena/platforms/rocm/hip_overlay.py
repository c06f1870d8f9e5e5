"""What clang takes for a ROCm installation where there is none: headers and device libraries, in one folder.

For compiling only. Nothing that was built against it is ever run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms.rocm import hip_headers
from arena.platforms.toolchains.build_cache import BuildCache, content_key
from arena.platforms.toolchains.hip_build import folder_texts
from arena.platforms.toolchains.targets import TARGETS
from arena.processes import process

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


def overlay(cache: BuildCache, clang: Path) -> Path:
    """The folder for `--rocm-path`, written once per content by the help of the clang that will use it.

    Raises `InfrastructureError` naming what is missing.
    """
    libraries = device_libraries()
    if libraries is None:
        raise InfrastructureError(f"AMD's device libraries are missing: install the Debian package {LIBRARIES_PACKAGE}")
    headers = _headers()
    controls = _controls(_layout(clang))
    bitcode = {path.name: path for path in sorted(libraries.glob("*.bc")) if path.name not in controls}
    sums = {name: f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for name, path in bitcode.items()}
    parts = (("header", headers), ("bitcode", sums), ("control", controls))
    key = content_key({f"{what} {name}": text for what, texts in parts for name, text in texts.items()})
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
        for name, text in controls.items():
            _assemble(text, folder / name, clang.with_name("llvm-as"))
        return cache.publish(root, key)


def control_text(isa: str, layout: str = "") -> str:
    """LLVM IR of the constants by which the libraries choose code: the ISA's number, and that denormals are kept.

    Debian's libraries know no ISA after gfx940, and still read the second, which newer compilers no longer define
    (LLVM's AMDGPU usage guide, OpenCL control libraries).
    """
    major, minor, step = int(isa[:-2]), int(isa[-2], 16), int(isa[-1], 16)
    kind = "linkonce_odr protected local_unnamed_addr addrspace(4) constant"
    return (
        f"{layout}\n"
        'target triple = "amdgcn-amd-amdhsa"\n'
        f"@__oclc_ISA_version = {kind} i32 {major * 1000 + minor * 100 + step}, align 4\n"
        f"@__oclc_daz_opt = {kind} i8 0, align 1\n"
    )


def _controls(layout: str) -> dict[str, str]:
    """File name → LLVM IR, for every AMD target."""
    isas = [facts.arch.removeprefix("gfx") for facts in TARGETS.values() if facts.vendor == "amd"]
    return {f"{_ISA}{isa}.bc": control_text(isa, layout) for isa in isas}


def _layout(clang: Path) -> str:
    """The line of LLVM IR by which this clang lays out data on AMD GPUs: modules of another one are warned of."""
    command: list[str | Path] = [
        clang,
        "--target=amdgcn-amd-amdhsa",
        "-x",
        "c",
        "-S",
        "-emit-llvm",
        "/dev/null",
        "-o",
        "-",
    ]
    lines = process.run(command, timeout_s=30.0).output.splitlines()
    return next((line for line in lines if line.startswith("target datalayout")), "")


def _assemble(text: str, to: Path, assembler: Path) -> None:
    done = process.run([assembler, "-", "-o", to], timeout_s=30.0, stdin=text.encode())
    if not done.ok:
        raise InfrastructureError(f"{assembler} refuses the device libraries' constants: {done.output.strip()}")


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
