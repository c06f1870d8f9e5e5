"""A HIP library as PyTorch's profiler sees it loaded: its error numbers have the runtime's names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from arena.worker.loaders import HipEntry

RUNTIME = 'const char* hipGetErrorName(int code) { return code == 1 ? "hipErrorInvalidValue" : "hipErrorUnknown"; }\n'


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler on this machine")
@pytest.mark.parametrize(("runtime", "said"), [(RUNTIME, " (hipErrorInvalidValue)"), ("", "")])
def test_error_numbers_are_named_by_the_runtime_in_reach(tmp_path: Path, runtime: str, said: str) -> None:
    source, library = tmp_path / "kernel.c", tmp_path / "kernel.so"
    source.write_text(f"{runtime}int entry(void) {{ return 1; }}\n", encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True, timeout=60)
    assert HipEntry(library, "entry").error_name(1) == said
