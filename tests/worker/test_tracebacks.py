"""Tracebacks of candidates: their own frames under a bare name, whatever libraries did in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from arena.task.numerics.reference import load_module
from arena.worker.modules import LoadError
from arena.worker.tracebacks import explain


def raised(folder: Path, text: str, *arguments: object) -> tuple[BaseException, str]:
    """What `f` of a candidate raises, and the candidate's path."""
    file = folder / "kernel.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Exception) as caught:
        load_module(file, "candidate").f(*arguments)
    return caught.value, str(file)


def test_frames_of_libraries_are_left_out(tmp_path: Path) -> None:
    said = explain(*raised(tmp_path, "import json\ndef f():\n    json.loads('{')\n"))
    assert said.startswith('Traceback (most recent call last):\n  File "kernel.py", line 3, in f\n    json.loads(')
    assert "decoder.py" not in said and said.splitlines()[-1].startswith("json.decoder.JSONDecodeError: Expecting")


def test_what_the_candidate_chains_stays_a_chain(tmp_path: Path) -> None:
    text = "def f():\n    try:\n        1 / 0\n    except Exception as one:\n        raise ValueError('two') from one\n"
    said = explain(*raised(tmp_path, text))
    assert said == (
        'Traceback (most recent call last):\n  File "kernel.py", line 3, in f\n    1 / 0\n'
        "ZeroDivisionError: division by zero\n"
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        "  File \"kernel.py\", line 5, in f\n    raise ValueError('two') from one\n"
        "ValueError: two\n"
    )


def test_causes_of_libraries_are_left_out(tmp_path: Path) -> None:
    def library(_: Callable[[], None] | None = None) -> None:
        try:
            [][0]
        except IndexError as cause:
            raise RuntimeError("of the library") from cause

    said = explain(*raised(tmp_path, "def f(call):\n    call()\n", library))
    assert "IndexError" not in said and said.endswith("    call()\nRuntimeError: of the library\n")


def test_deep_recursion_takes_few_lines(tmp_path: Path) -> None:
    text = "def f(n=0):\n    return g(n)\ndef g(n):\n    return f(n + 1)\n"
    said = explain(*raised(tmp_path, text))
    assert len(said.splitlines()) < 40 and "frames left out" in said and "RecursionError" in said


def test_without_a_frame_of_the_candidate_all_is_told_unless_the_message_says_it() -> None:
    try:
        raise KeyError("here")
    except KeyError as problem:
        assert "test_tracebacks.py" in explain(problem, "/nowhere/kernel.py")
    try:
        raise LoadError("kernel.py defines no function `f`")
    except LoadError as problem:
        said = explain(problem, "/nowhere/kernel.py")
    assert said == "kernel.py defines no function `f`"


def test_an_error_of_the_loader_stands_without_a_traceback() -> None:
    assert explain(LoadError("expected one\nfound    another"), "kernel.py") == "expected one\nfound    another"
