"""The files that compilers read, told by the compilers themselves, and which of them a HIP candidate may include.

What may be read is found by building a probe that includes every documented header with the candidate's own flags.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms.toolchains.base import BuildFailed, HipToolchain, Source, Target
from arena.results.messages import message

READS_NAME = "reads.txt"
ASSEMBLED = "{assembled}"
"""In a compiler call: the file into which the assembler writes what it read."""
_OF_GCC, _OF_CLANG, _OF_THE_ASSEMBLER = "reads.gcc", "reads.clang", "reads.assembler"
_ASSEMBLY_MARK = "assembled "
_ESCAPED = re.compile(r"\\([ #\\:])")

_C = (
    *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
    *("setjmp", "signal", "stdalign", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath"),
    *("time", "uchar", "wchar", "wctype", "alloca", "dirent", "dlfcn", "elf", "endian", "err", "error", "execinfo"),
    *("fcntl", "features", "getopt", "link", "malloc", "memory", "poll", "pthread", "sched", "semaphore", "strings"),
    *("syscall", "ucontext", "unistd", "values"),
)
"""Headers of C and its library that lie among those of other libraries. What may be called is told by symbols."""
_CXX = (
    *("algorithm", "any", "array", "atomic", "bitset", "cassert", "cfloat", "charconv", "chrono", "climits", "cmath"),
    *("complex", "condition_variable", "cstdint", "cstdio", "cstdlib", "cstring", "cuchar", "deque", "exception"),
    *("filesystem", "fstream", "functional", "future", "initializer_list", "iomanip", "iostream", "iterator", "limits"),
    *("list", "locale", "map", "memory", "memory_resource", "mutex", "new", "numeric", "optional", "ostream", "queue"),
    *("random", "ratio", "regex", "set", "shared_mutex", "sstream", "stack", "stdexcept", "string", "string_view"),
    *("system_error", "thread", "tuple", "type_traits", "typeindex", "unordered_map", "unordered_set", "utility"),
    *("valarray", "variant", "vector"),
)
_HIP = (
    *("hip_runtime", "hip_runtime_api", "hip_vector_types", "hip_fp16", "hip_bf16", "hip_bfloat16", "hip_fp8"),
    "hip_cooperative_groups",
)
_OF_CUDA = ("mma.h", "cuda_pipeline.h")
"""What the compiler offers of a device's own instructions. CUB, Thrust and CUDA's C++ library are not among it."""
_WHOLE = (
    ("vector", 1),  # the C++ library's folder
    ("c++config.h", 2),  # its part for this machine
    ("hip_runtime.h", 1),
)
"""Folders in which nothing but what may be read lies: named by a file in them, and how many steps above it."""
_COMPILERS = re.compile(r"/(gcc|clang)/(.*/)?include$")
_LIBC = re.compile(r"/include(/\w+-linux-gnu)?/(bits|sys|gnu|asm|asm-generic|linux)$")


@dataclass(frozen=True)
class Readable:
    """What a candidate's build may read: files, and everything below folders; all of it as real paths."""

    files: frozenset[str]
    folders: tuple[str, ...]

    @staticmethod
    def of(read: Iterable[str]) -> Readable:
        """What a probe's build has read, and the folders that belong to the same languages."""
        files = frozenset(read)
        return Readable(files, tuple(sorted({f"{folder}{os.sep}" for folder in _whole_folders(files)})))

    def foreign(self, read: Iterable[str]) -> list[str]:
        """Those of the files that may not be read, in order."""
        return [file for file in read if file not in self.files and not file.startswith(self.folders)]


def environment(folder: Path, work: Path) -> dict[str, str]:
    """Have every compiler that is started, by whichever driver and for whichever device, append what it reads.

    GCC splits its variable at spaces, so that it gets the place relative to `work`, where compilers are started.
    """
    return {
        "SUNPRO_DEPENDENCIES": os.path.relpath(folder / _OF_GCC, work),
        "CC_PRINT_HEADERS": "1",
        "CC_PRINT_HEADERS_FILE": str(folder / _OF_CLANG),
    }


def assembler_file(folder: Path, work: Path) -> str:
    """Return where the assembler writes what it read, from `work`: nvcc splits its argument at spaces and commas."""
    return os.path.relpath(folder / _OF_THE_ASSEMBLER, work)


def collect(folder: Path, work: Path, scratch: Path) -> str:
    """What compilers have noted in `folder`, a file a line, but for their own temporary files and those in `work`.

    An assembler's files are marked: none of a candidate's is its to read.
    """
    gcc, clang, assembler = (folder / name for name in (_OF_GCC, _OF_CLANG, _OF_THE_ASSEMBLER))
    lines = set()
    for file, mark, parse in ((gcc, "", _rules), (clang, "", _lines), (assembler, _ASSEMBLY_MARK, _rules)):
        if not file.is_file():
            continue
        for name in parse(file.read_text(encoding="utf-8", errors="surrogateescape")):
            # A compiler names what it includes from the folder that it was started in.
            path = os.path.realpath(work / name)
            ours = path.startswith((f"{work.resolve()}{os.sep}", f"{scratch.resolve()}{os.sep}"))
            if not ours and path != os.path.realpath(os.devnull):
                lines.add(mark + path)
        file.unlink()
    return "".join(f"{line}\n" for line in sorted(lines))


def forbidden_reads(library: Path, toolchain: HipToolchain, target: Target) -> list[str]:
    """What the build of a candidate's `library` has read and may not, each as a sentence; nothing for an honest one.

    Raises `InfrastructureError` where the compiler has not said what it read.
    """
    read = _read(library)
    included = [line for line in read if not line.startswith(_ASSEMBLY_MARK)]
    assembled = [line.removeprefix(_ASSEMBLY_MARK) for line in read if line.startswith(_ASSEMBLY_MARK)]
    foreign = _readable(toolchain, target).foreign(included)
    return [
        *(message("header_not_allowed", file=file) for file in foreign),
        *(message("assembler_read_file", file=file) for file in assembled),
    ]


def _readable(toolchain: HipToolchain, target: Target) -> Readable:
    """What the documented headers make a toolchain read. The build cache keeps the probe's build."""
    built = toolchain.build(Source(probe(), "#pragma once\n", "probe.hip"), target)
    if isinstance(built, BuildFailed):
        raise InfrastructureError(f"the documented headers do not compile for {target.arch}:\n{built.reason}")
    return _readable_by(built.library)


@cache
def _readable_by(probed: Path) -> Readable:
    """Return what a probe's build has read; the build cache names builds by their content."""
    return Readable.of(_read(probed))


def probe() -> str:
    """A source that includes every documented header that is there."""
    groups = (_CXX, (f"{name}.h" for name in _C), (f"hip/{name}.h" for name in _HIP))
    includes = [f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for group in groups for name in group]
    cuda = [f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in _OF_CUDA]
    # Votes that the generated HIP headers define as macros are names of CUDA's own.
    votes = [f"#undef {name}\n" for name in ("__any", "__all", "__ballot", "__match_any")]
    return "".join([*includes, "#ifdef __CUDACC__\n", *votes, *cuda, '#endif\nextern "C" int probed() { return 0; }\n'])


def _read(library: Path) -> list[str]:
    file = library.with_name(READS_NAME)
    lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if file.is_file() else []
    if not lines:
        raise InfrastructureError(
            f"the compiler did not say which headers it read for {library}: use g++ or clang++, "
            f"and delete the folder {library.parent}"
        )
    return lines


def _whole_folders(files: Iterable[str]) -> Iterator[str]:
    for path in map(Path, files):
        for name, steps in _WHOLE:
            if path.name == name:
                yield str(path.parents[steps - 1])
        yield from (str(above) for above in path.parents if _is_of_the_system(str(above)))


def _is_of_the_system(folder: str) -> bool:
    return bool(_COMPILERS.search(folder) or _LIBC.search(folder))


def _rules(text: str) -> Iterator[str]:
    """The prerequisites in rules of make; each rule begins with what is made."""
    for rule in text.replace("\\\n", " ").splitlines():
        _, _, needed = rule.partition(": ")
        yield from (_ESCAPED.sub(r"\1", name) for name in re.findall(r"(?:\\.|[^\s\\])+", needed))


def _lines(text: str) -> list[str]:
    return text.splitlines()
