"""YAML without surprises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.errors import FileError
from arena.task.corpus import strict_yaml


def parsed(folder: Path, text: str) -> Any:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return strict_yaml.parse(path).data


def refused(folder: Path, text: str | bytes) -> FileError:
    path = folder / "x.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FileError) as caught:
        strict_yaml.parse(path)
    assert str(path) in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-2", 0.01),
        ("1.0e-6", 1e-6),
        ("-3E5", -3e5),
        (".5", 0.5),
        ("2.", 2.0),
        ("12", 12),
        ("-7", -7),
        ("1_000", 1000),
        ("no", "no"),
        ("yes", "yes"),
        ("off", "off"),
        ("NO", "NO"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("0x10", "0x10"),
        (".inf", ".inf"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("'1e-2'", "1e-2"),
        ('"true"', "true"),
        ("4 * M * N", "4 * M * N"),
        ("$dtype", "$dtype"),
    ],
)
def test_words_and_numbers(tmp_path: Path, text: str, value: object) -> None:
    got = parsed(tmp_path, f"key: {text}\n")["key"]
    assert got == value and type(got) is type(value)


def test_an_empty_value_is_nothing(tmp_path: Path) -> None:
    assert parsed(tmp_path, "key:\n") == {"key": None}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_back(value: float) -> None:
    import yaml

    node = yaml.compose(repr(value), Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.ScalarNode)
    assert strict_yaml._scalar(node) == value


def test_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("# a comment\na:\n  b: [1,\n      2]\n  c: {d: 3}\n", encoding="utf-8")
    document = strict_yaml.parse(path)
    assert document.lines[("a", "b", 0)] == 3
    assert document.lines[("a", "b", 1)] == 4
    assert document.lines[("a", "c", "d")] == 5
    problem = document.error(["a", "c", "nowhere", "deeper"], "is wrong")
    assert (problem.line, problem.key) == (5, "a.c.nowhere.deeper")
    assert str(problem) == f"{path}:5: `a.c.nowhere.deeper`: is wrong"


def test_a_duplicate_key_names_both_lines(tmp_path: Path) -> None:
    problem = refused(tmp_path, "a: 1\nb: 2\na: 3\n")
    assert (problem.line, problem.key) == (3, "a") and "first on line 1" in problem.problem
    assert refused(tmp_path, "x: {M: 1, N: 2,\n M: 3}\n").line == 2


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: !!python/name:os.system x\n", 1, "tag"),
        ("a: 1\nb: !mine 'x'\n", 2, "tag"),
        ("a: !!set {x, y}\n", 1, "tag"),
        ("a: 1\nb: !mine [1]\n", 2, "tag"),
        ("a: &first [1, 2]\nb: *first\n", 1, "alias"),
        ("a: &loop [*loop]\n", 1, "alias"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", 1, "alias"),
        ("? [1, 2]\n: 3\n", 1, "plain word"),
        ("a: 1\nb: [1, 2\n", 3, "not valid YAML"),
        ("a: *missing\n", 1, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("", 1, "empty"),
        ("# nothing but a comment\n", 1, "empty"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
        (b"a: 1\nb: \x00\n", 2, "not valid YAML"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str | bytes, line: int, says: str) -> None:
    problem = refused(tmp_path, text)
    assert says in problem.problem
    assert problem.line == line


def test_a_missing_file_and_a_folder_are_file_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(FileError, match="cannot be read"):
            strict_yaml.parse(path)


def test_a_number_with_a_point_is_no_integer(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("tasks: ['*']\nattempts: 1.0\nagents: [{kind: noop}]\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"run.yaml:2: `attempts`: 1.0 is not of type 'integer'"):
        strict_yaml.read(path, "run")
