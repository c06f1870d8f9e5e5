"""The page that walks through one evaluation names files and functions that exist, and each step calls the next."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "develop" / "walk.md"
MOST_WORDS = 700
_ROW = re.compile(r"^\| (\d) \| `(arena/[\w/]+\.py)` \| `(\w+)\.(\w+)` \|(?: `([\w.]+)`)? \|$", re.MULTILINE)
STEPS = _ROW.findall(PAGE.read_text(encoding="utf-8"))


def _tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def _class(file: str, name: str) -> ast.ClassDef:
    """The class of this name; `StopIteration` where the file has none."""
    return next(node for node in _tree(file).body if isinstance(node, ast.ClassDef) and node.name == name)


def _imported(file: str) -> set[str]:
    froms = [node for node in ast.walk(_tree(file)) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in froms for alias in node.names}


def _called(tree: ast.AST) -> set[str]:
    """Names of what is called: `run` of `x.run()`, `Pass` of `Pass(name)` and of `case Pass(name=name)`."""
    calls = {ast.unparse(node.func).rsplit(".", 1)[-1] for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return calls | {ast.unparse(node.cls) for node in ast.walk(tree) if isinstance(node, ast.MatchClass)}


def test_the_page_has_five_steps_in_order_and_is_short() -> None:
    assert [step[0] for step in STEPS] == ["1", "2", "3", "4", "5"]
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (\d)\. ", text, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert len(text.split()) <= MOST_WORDS


@pytest.mark.parametrize(("file", "name", "function"), [step[1:4] for step in STEPS])
def test_every_function_to_read_first_exists(file: str, name: str, function: str) -> None:
    assert function in {node.name for node in _class(file, name).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("step", "following"), list(itertools.pairwise(STEPS)))
def test_every_step_hands_over_to_the_next(step: tuple[str, ...], following: tuple[str, ...]) -> None:
    """By a call of a function of the next step, or by a message that the next step obeys."""
    file, name, handed = step[1], step[2], step[4]
    called = _called(_class(file, name))
    if "." in handed:
        assert handed == f"{following[2]}.{following[3]}"
        assert following[2] in _imported(file) and following[3] in called
    else:
        assert handed in called & _imported(file)
        assert handed in _called(_class(following[1], following[2])) & _imported(following[1])


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[0])
def test_every_private_function_that_a_step_names_exists(step: tuple[str, ...]) -> None:
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {step[0]}. ")[1].split("\n## ")[0]
    defined = {node.name for node in ast.walk(_tree(step[1])) if isinstance(node, ast.FunctionDef)}
    assert set(re.findall(r"`(_\w+)`", text)) <= defined
