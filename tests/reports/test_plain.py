"""Text that a program printed: nothing in it moves a cursor, hides or reorders."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.reports.plain import arguments, cut, first_line, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never ended\nis still seen", "never ended\nis still seen"),
        ("a\r\nb", "a\nb"),
        ("10 %\r50 %\r100 %\ndone", "100 %\ndone"),
        ("a\x00b\x07\x9bc", "a\ufffdb\ufffd\ufffdc"),
        ("user\u202etxt.exe", "user\ufffdtxt.exe"),
        ("tab\tnewline\n", "tab\tnewline\n"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text())
def test_plain_text_has_no_control_characters_and_stays_as_it_is(text: str) -> None:
    once = plain(text)
    assert not [char for char in once if ord(char) < 32 and char not in "\n\t"]
    assert plain(once) == once


@pytest.mark.parametrize("piece", ["x", "\x1b]", "\x1b[", "\r", "\x1b]a\n", "\x1b[1;"])
def test_long_texts_take_no_long_time(piece: str) -> None:
    started = time.process_time()
    plain(piece * 100_000)
    assert time.process_time() - started < 5


@given(st.text(max_size=100), st.integers(1, 50))
def test_a_cut_accounts_for_every_character(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert len(shown.head) + shown.left_out + len(shown.tail) == len(text)
    assert len(shown.head) + len(shown.tail) <= limit
    assert text.startswith(shown.head)
    assert text.endswith(shown.tail)


def test_arguments_are_readable() -> None:
    assert arguments('{"command": "ls", "n": [1], "text": "a\\nb"}') == "command: ls\nn: [1]\ntext:\na\nb"
    for text in ("ls", "{broken", "[1]", "{" * 100_000):
        assert arguments(text) == text


def test_first_line() -> None:
    assert first_line("\n\n  a  \nb") == "a"
    assert first_line("") == ""
    assert first_line("x" * 300) == "x" * 109 + "…"
