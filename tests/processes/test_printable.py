"""Text from candidates on its way to terminals, pages and records."""

from __future__ import annotations

import pytest

from arena.processes.printable import printable, shortened

HOSTILE = "\x1b[2J\x1b]0;title\x07 \x9b31m red\r\n\tand\x00 \u202eback\u2066 \ud800\x7f\ufeff"


def test_nothing_is_left_that_a_terminal_obeys() -> None:
    said = printable(HOSTILE)
    assert said == "�[2J�]0;title� �31m red\n\tand� �back� ���"
    assert all(character.isprintable() or character in "\t\n" for character in said)
    assert said.encode()


@pytest.mark.parametrize("text", ["", "plain", "Größe: 4 µs × 2 — 10⁻³ …", "two\n\tlines", "核 🙂"])
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == shortened(text, 100) == text


def test_every_code_point_comes_out_encodable_and_one_for_one() -> None:
    everything = "".join(map(chr, range(0x110000)))
    assert len(printable(everything).encode()) > 0x100000
    assert not set(map(chr, (*range(9), *range(11, 32), *range(127, 160)))) & set(printable(everything))


@pytest.mark.parametrize("characters", [5, 100, 120, 8000])
def test_of_a_long_text_beginning_and_end_are_kept(characters: int) -> None:
    cut = shortened("first " + "x\x1b" * 4_000_000 + " last", characters)
    assert len(cut) == characters and cut.startswith("firs") and "\x1b" not in cut
    assert characters < 120 or (cut.endswith(" last") and "left out here" in cut)
    assert shortened("y" * characters, characters) == "y" * characters
