"""The functions that the object files of a module's extension may need: an allow-list, as for HIP candidates.

PyTorch's operators are among them: they go through its dispatcher, where those that compute are refused. What reaches
a library's kernels past the dispatcher is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from arena.platforms.toolchains.elf import RELOCATABLE, Elf, ElfError
from arena.platforms.toolchains.hip_reads import READS_NAME
from arena.platforms.toolchains.hip_symbols import allowed_symbols, of_object
from arena.results.messages import message

_PYTORCH = (
    r"_ZNK?R?O?2at4_ops\w+",  # operators, by way of the dispatcher
    r"_ZNK?R?O?2at(6Tensor|10TensorBase|11TensorMaker|12OptionalTensor|7Context|13globalContext)\w*",
    r"_ZN2at\d+(print|operator|toString|get_num_threads|get_default_dtype|detail)\w*|_ZN2atls\w+",
    r"_ZN2at4cuda(9warp_size|14detail\w*|19getDeviceProperties|26getCurrentDeviceProperties)\w*",
    r"_ZN2at4cuda24getCurrentDevicePropertiesEv|_ZN2at6detail\w+",
    r"_ZNK?R?O?3c10\w+|_ZNK?6caffe2\w+",
    r"_ZNK?R?O?8pybind11\w+|(_Z\d+)?THPVariable\w*|THP\w*Type|THPDtype\w*|THPDevice\w*|THPStream\w*",
    r"_ZNK?R?O?5torch(7Library|11CppFunction|6detail|6python|8autograd|9registerXPU|5utils|8PyWarningHandler)\w*",
    r"_ZNK?5torch(16throw_torch\w+|14throw\w+|10TypeError\w+|9ValueError\w+|19translate_exception\w+|8PyObject\w+)\w*",
    r"_ZN5torch\d+(handle_torch_function|python_arg|check_has_torch|PyError|python_error)\w*",
    r"_ZT[VTIS](S[t\w])?N?K?(5torch|3c10|2at|8pybind11|6caffe2)\w+|_ZT[VTIS]PK?\w+|_ZT[VTIS]N?K?S[t\w]\w*|_ZTI[a-z]\w*|_ZTIN10__cxxabiv1\w+",
)
_LANGUAGES = (
    r"_?Py[A-Z_]\w*",
    r"_ZNK?R?O?S[tabiosd]\w+|_ZS[tls]\w+|_ZTh\w+|_Z(GV|TH|TW)\w+",
    r"strdup|getenv|secure_getenv|memmem|strtok|sscanf|__isoc\w+|__dynamic_cast|pthread_\w+|nanosleep|sched_yield",
)
_CUDA = (r"cudaGetDriverEntryPoint\w*", r"cuTensorMap\w+", r"cuGetError(Name|String)", r"cudaGetDeviceProperties\w*")
_LIBRARIES = re.compile(r"/(cutlass|cute)/")
"""headers of kernel libraries that PyTorch's own headers do not read"""
_SECTIONS = frozenset({"__nv_module_id", "__nv_relfatbin"})
_MOST_RULES = 3


def broken_rules(objects: list[Path]) -> list[str]:
    """Return what the object files of an extension need and may not, each as a message; nothing for honest ones."""
    allowed = allowed_symbols("nvidia", *_PYTORCH, *_LANGUAGES, *_CUDA)
    own = _defined(objects)
    found = list(dict.fromkeys(detail for file in objects for detail in _of(file, allowed, own)))
    return found[:_MOST_RULES]


def _of(file: Path, allowed: re.Pattern[str], own: frozenset[str]) -> Iterator[str]:
    try:
        yield from of_object(Elf(file, RELOCATABLE), allowed, own, _SECTIONS)
    except (ElfError, OSError) as problem:
        yield message("object_unreadable", problem=problem)
    read = file.with_name(READS_NAME).read_text(encoding="utf-8", errors="surrogateescape")
    for line in read.splitlines():
        if _LIBRARIES.search(line):
            yield message("include_not_allowed", place=file.name, name=line)
            return


def _defined(objects: list[Path]) -> frozenset[str]:
    """Return what the units define for each other."""
    try:
        return frozenset(s.name for file in objects for s in Elf(file, RELOCATABLE).symbols() if not s.undefined)
    except (ElfError, OSError):
        return frozenset()
