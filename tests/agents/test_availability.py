"""Whether a program can start, and that it is asked for its version once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from arena.agents.availability import find_availability
from arena.agents.definition import Definition, load_definition

DEFINITION = """\
name: coder
about: x
command: [coder]
version: [coder, --version]
prompt: argument
events: text
install: get coder
credentials: [CODER_KEY, OTHER_KEY]
"""


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    path = tmp_path / "coder.yaml"
    path.write_text(DEFINITION, encoding="utf-8")
    return load_definition(path)


def install(folder: Path, answer: str, changed_s: int = 1) -> dict[str, str]:
    """Put a program there that writes down each time it is asked; returns an environment in which it is found."""
    folder.mkdir(exist_ok=True)
    program = folder / "coder"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{answer}\n', encoding="utf-8")
    program.chmod(0o755)
    os.utime(program, (changed_s, changed_s))
    return {"PATH": f"{folder}:{os.environ['PATH']}", "OTHER_KEY": "k"}


def asked(folder: Path) -> int:
    return len((folder / "asked").read_text(encoding="utf-8").splitlines())


def test_a_program_is_asked_for_its_version_once(tmp_path: Path, definition: Definition) -> None:
    folder = tmp_path / "bin"
    environ = install(folder, "echo a note; echo coder 1.0")
    for _ in range(3):
        found = find_availability(definition, environ)
        assert (found.version, found.binary, found.can_start) == ("coder 1.0", folder / "coder", True)
    assert asked(folder) == 1
    assert (
        find_availability(replace(definition, version=("coder", "-v")), environ).version == "coder 1.0"
        and asked(folder) == 2
    )


def test_another_program_is_asked_anew(tmp_path: Path, definition: Definition) -> None:
    """One that was installed over it, and one elsewhere; a link leads to the program that it names."""
    folder, elsewhere = tmp_path / "bin", tmp_path / "elsewhere"
    assert find_availability(definition, install(folder, "echo 1")).version == "1"
    assert find_availability(definition, install(folder, "echo 2", changed_s=2)).version == "2" and asked(folder) == 2
    assert find_availability(definition, install(elsewhere, "echo 3", changed_s=2)).version == "3"
    environ = install(tmp_path / "links", "")
    (tmp_path / "links" / "coder").unlink()
    for place, version in ((folder, "2"), (elsewhere, "3")):
        (tmp_path / "links" / "coder").unlink(missing_ok=True)
        (tmp_path / "links" / "coder").symlink_to(place / "coder")
        assert find_availability(definition, environ).version == version


@pytest.mark.parametrize("answer", ["exit 3", "", "echo 1; exit 1"])
def test_one_that_gives_no_answer_is_asked_again(tmp_path: Path, definition: Definition, answer: str) -> None:
    folder = tmp_path / "bin"
    environ = install(folder, answer)
    assert [find_availability(definition, environ).version for _ in range(2)] == ["", ""] and asked(folder) == 2


def test_what_is_missing(tmp_path: Path, definition: Definition) -> None:
    absent = find_availability(definition, {"PATH": str(tmp_path)})
    assert (absent.binary, absent.version, absent.can_start) == (None, "", False)
    assert absent.lacks(definition) == "coder is not on PATH; install it with `get coder`"
    environ = install(tmp_path / "bin", "echo 1")
    del environ["OTHER_KEY"]
    assert find_availability(definition, environ).lacks(definition) == "set CODER_KEY or OTHER_KEY"
    assert find_availability(replace(definition, version=()), environ).version == ""
