"""Check the imports and includes in a candidate's text, before anything is built.

It is an early message with file and line, and nothing depends on it. What a text hides from it is refused later:
PyTorch's operators where a Triton candidate runs, headers by what the compiler read (`hip_reads`), and what the object
file of a HIP candidate needs by `hip_symbols`.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from arena.judge.compile.live_code import live_nodes
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.toolchains.hip_scan import mask
from arena.processes.protocol import Extension
from arena.results.messages import message
from arena.results.session import KERNEL_LIMIT_BYTES
from arena.results.verdict import Status
from arena.task.definition import Task

_BUILD = ("pybind11", "ninja")
"""compute nothing: modules ask them for the place of headers or of a program; no part of them is used"""
_ALLOWED = frozenset({"torch", "triton", "numpy", "einops", "__future__", *_BUILD, *sys.stdlib_module_names})
_EXTENSIONS = "torch.utils.cpp_extension"
"""compiles what a module brings, and is refused where a task takes no modules"""
_GENERATORS = (
    *(_EXTENSIONS, "torch._inductor", "torch._dynamo", "torch.compile"),
    *("torch.cuda.jiterator", "torch.cuda._compile_kernel"),
)
"""parts of PyTorch that compile other kernels than the candidate's"""
_KERNEL_LIBRARIES = re.compile(
    r"(hip|cu)(blas|dnn|fft|sparse|solver|rand|tensor|cub)|roc(blas|prim|fft|sparse|solver|thrust|wmma)|miopen"
    r"|(ck|ck_tile|cutlass|cute|thrust|cub|torch|aten|c10|oneapi)/|mkl|openblas|cblas|dnnl",
    re.IGNORECASE,
)
_OF_PYTORCH = ("torch/", "aten/", "c10/")
_MOST_TO_COPY = 20_000 << 20
"""characters: 20,000 braces in a mebibyte, which takes some seconds"""
_INCLUDE = re.compile(r"^[ \t]*(?P<sign>#)[ \t]*include[ \t]*([<\"])(?P<name>[^>\"\n]+)[>\"]", re.MULTILINE)


def check(task: Task, candidate: Path) -> None:
    """Raise `CandidateFailed` with `rule_violation` where the text of a candidate breaks a rule."""
    size = candidate.stat().st_size
    if size > KERNEL_LIMIT_BYTES:  # what reads it, here and in compilers, is bounded by its length
        detail = message("file_too_large", file=candidate.name, found=size, allowed=KERNEL_LIMIT_BYTES)
        raise CandidateFailed(Status.RULE_VIOLATION, detail)
    text = candidate.read_text(encoding="utf-8", errors="replace")
    found = _imports(text, candidate.name, task) if task.task_type.triton else _includes(text, candidate.name)
    for detail in found:
        raise CandidateFailed(Status.RULE_VIOLATION, detail)


def kernel_libraries(extension: Extension) -> list[str]:
    """Return the headers of kernel libraries that the texts of an extension include, PyTorch's own left out."""
    texts = (*extension.cpp, *extension.cuda)
    names = [found["name"].strip() for text in texts for found in _INCLUDE.finditer(text)]
    return [name for name in names if _KERNEL_LIBRARIES.match(name) and not name.lower().startswith(_OF_PYTORCH)]


def _imports(text: str, file: str, task: Task) -> Iterator[str]:
    """Yield a message for each module in live code that may not be imported; none if the text does not parse.

    A text that takes long to parse is refused: Python copies what is left of an f-string at each of its braces.
    """
    braces = text.count("{")
    if braces * len(text) > _MOST_TO_COPY:
        yield message("too_many_braces", place=f"{file}:1", found=braces)
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    inner: set[ast.AST] = set()
    generators = [name for name in _GENERATORS if name != _EXTENSIONS or not task.takes_modules]
    for node in live_nodes(tree, task.called):  # outer nodes first
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        if isinstance(node, ast.Attribute):
            inner.add(node.value)
            if node in inner:
                continue  # its name begins one that was checked: all of a long one's would take seconds
        place = f"{file}:{node.lineno}"
        for name in _modules(node):
            if name.partition(".")[0] not in _ALLOWED:
                yield message("import_not_allowed", place=place, name=name)
        for name in (*_modules(node), *_attribute(node)):
            if any(f"{name}.".startswith(f"{generator}.") for generator in generators):
                yield message("foreign_compiler", place=place, name=name)


def _modules(node: ast.stmt | ast.expr) -> list[str]:
    """Return what an import statement names, with `from a import b` as a.b too: it may be a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _attribute(node: ast.stmt | ast.expr) -> list[str]:
    """Return `a.b.c` for an expression that says so."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [".".join((node.id, *reversed(parts)))] if parts and isinstance(node, ast.Name) else []


def _includes(text: str, file: str) -> Iterator[str]:
    """Yield a message for each header of a kernel library, by its usual spelling; `hip_reads` finds every other."""
    code = mask(text)
    for found in _INCLUDE.finditer(text):
        name = found["name"].strip()
        if code[found.start("sign")] == "#" and _KERNEL_LIBRARIES.match(name.removeprefix("hip/")):
            yield message("include_not_allowed", place=f"{file}:{_line(text, found.start())}", name=name)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
