"""Logs made short: an author finds the line that matters, and nothing of where the harness lies."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from arena.processes.error_line import first_error_line
from arena.runs.service.logs import cleaned, shortened
from arena.task.numerics.reference import load_module

GCC = """for float32: kernel.hip: In function 'hipError_t softmax(const T*)':
kernel.hip:29:5: error: 'retrun' was not declared in this scope
   29 |     retrun value;
kernel.hip:30:1: warning: no return statement
"""


def traced(tmp_path: Path) -> str:
    """What a host says of a candidate that fails while it is loaded: frames of the harness around one of its own."""
    folder = tmp_path / "arena-program-4026531836-77-ab_cd"
    folder.mkdir()
    (folder / "kernel.py").write_text("import json\njson.loads('{')\n", encoding="utf-8")
    with pytest.raises(ValueError) as caught:
        load_module(folder / "kernel.py", "candidate")
    return "".join(traceback.format_exception(caught.value))


def test_a_traceback_keeps_the_candidates_frames(tmp_path: Path) -> None:
    raw = traced(tmp_path)
    assert "numerics/reference.py" in raw and str(tmp_path) in raw
    text = cleaned(raw)
    assert "  File \"kernel.py\", line 2, in <module>\n    json.loads('{')\n" in text
    assert "reference.py" not in text and "importlib" not in text and str(tmp_path) not in text
    assert "json/decoder.py" in text, "libraries say where the candidate's call ended"
    assert text.startswith("Traceback (most recent call last):\n")


def test_frames_of_installed_libraries_take_a_line() -> None:
    frame = '  File "/opt/venv/lib/python3.11/site-packages/triton/runtime/jit.py", line 375, in run\n    x()\n'
    frame += "    ^^^\n"
    assert cleaned(frame) == '  File "triton/runtime/jit.py", line 375, in run\n'


def test_what_a_compiler_says_stays_as_it_is() -> None:
    assert cleaned(GCC) == GCC


def test_the_telling_line_of_what_is_printed(tmp_path: Path) -> None:
    assert first_error_line(GCC) == "kernel.hip:29:5: error: 'retrun' was not declared in this scope"
    assert first_error_line(cleaned(traced(tmp_path))).startswith("json.decoder.JSONDecodeError: Expecting")


def test_long_logs_lose_their_middle() -> None:
    assert shortened("short\n") == "short"
    cut = shortened("\n".join(map(str, range(1000))))
    assert cut.startswith("0\n1\n") and cut.endswith("\n999") and "… 920 lines left out …" in cut
    cut = shortened("x" * 50_000)
    assert len(cut) < 8_100 and "42000 characters left out" in cut
