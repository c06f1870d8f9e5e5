"""The baseline unchanged is recognised, whatever its comments and white space; another program is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.platforms.toolchains.same_program import same_program

CPP = '#include "vector.h"\n#define N 3\nint f(int a, int b)\n{\n  return a + b - -N; // sum\n}\n'
PYTHON = 'def f(x):\n    """Double."""\n    return x * 2  # twice\n'


@pytest.mark.parametrize(
    "other",
    [
        "// mine\n" + CPP,
        CPP.replace("  return a + b - -N; // sum", "return\ta+b/* sum */- -N ;"),
        CPP.replace("#define N 3", "#define  N   3  // three"),
        CPP.replace("return a", "return \\\n a"),
    ],
)
def test_cpp_is_compared_by_tokens(tmp_path: Path, other: str) -> None:
    assert _same(tmp_path, "kernel.hip", CPP, other)


@pytest.mark.parametrize(
    "other",
    [
        CPP.replace("- -N", "--N"),
        CPP.replace("N 3", "N 4"),
        CPP.replace("a + b", "b + a"),
        CPP.replace("vector.h", "matrix.h"),
        CPP.replace("// sum", "// sum\n  ;"),
    ],
)
def test_another_cpp_program_is_another(tmp_path: Path, other: str) -> None:
    assert not _same(tmp_path, "kernel.hip", CPP, other)


def test_python_is_compared_by_syntax_trees(tmp_path: Path) -> None:
    assert _same(tmp_path, "kernel.py", PYTHON, "# mine\ndef f( x ):\n\n    'Other words.'\n    return (x*2)\n")
    assert not _same(tmp_path, "kernel.py", PYTHON, PYTHON.replace("* 2", "* 2.0"))
    assert not _same(tmp_path, "kernel.py", "def f(:", "def g(:")
    assert _same(tmp_path, "kernel.py", "def f(:", "def f(:")


def _same(place: Path, name: str, one: str, two: str) -> bool:
    files = []
    for folder, text in (("one", one), ("two", two)):
        (place / folder).mkdir(exist_ok=True)
        (place / folder / name).write_text(text, encoding="utf-8")
        files.append(place / folder / name)
    return same_program(*files)
