"""One specification of the options of an evaluation: everything else that takes them is derived from it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import arena
from arena.cli.app import app
from arena.errors import UsageError
from arena.results.effort import Effort
from arena.task.corpus.strict_yaml import fault
from arena.task.options import EVALUATE, RUN, SERVE, Options, json_schema, options_of, overriding, specs
from tests.tools import load

PACKAGE = Path(arena.__file__).parent
PAGE = PACKAGE.parent / "docs" / "evaluate" / "configuration.md"
MOST_NAMES_BY_CHANCE = 2
COMMANDS = {EVALUATE: ["evaluate"], RUN: ["run"], SERVE: ["serve"]}


def test_the_page_on_configurations_has_the_table() -> None:
    assert "<!-- figure: options -->" in PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` | " in load("figures.options").table() for name in specs())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_flag_for_each_option_that_it_takes(command: str) -> None:
    found = typer.main.get_command(app)
    for name in COMMANDS[command]:
        found = found.commands[name]  # type: ignore[attr-defined]
    flags = {flag for parameter in found.params for flag in parameter.opts}
    for spec in specs().values():
        assert (spec.flag in flags) is (command in spec.commands), spec.name


def test_a_run_file_takes_what_a_run_takes() -> None:
    assert {*json_schema(RUN)["properties"]} == {spec.name for spec in specs().values() if RUN in spec.commands}
    whole = {"tasks": ["*"], "agents": [{"kind": "noop"}]}
    assert fault({**whole, "evaluation": {"seeds": 5}}, "run") is None
    place, text = fault({**whole, "evaluation": {"profile": True}}, "run") or ((), "")
    assert place == ("evaluation", "profile") and text.startswith("unknown key; expected one of: call_timeout_s")


@pytest.mark.parametrize("seeds", ["0", "101", "100000"])
def test_bounds_hold_on_the_command_line_as_in_python(seeds: str, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("x = 1\n", encoding="utf-8")
    said = CliRunner().invoke(app, ["evaluate", "rms_norm", str(kernel), "--seeds", seeds])
    assert isinstance(said.exception, UsageError) and str(said.exception).startswith("--seeds: ")
    with pytest.raises(UsageError, match="option `seeds`: "):
        arena.evaluate("rms_norm", kernel, seeds=int(seeds))


def test_options_in_python_are_checked_as_named_ones_are() -> None:
    with pytest.raises(UsageError, match="option `seeds`: 0 is less than the minimum of 1"):
        arena.evaluate("rms_norm", "x = 1\n", options=Options(seeds=0))
    with pytest.raises(UsageError, match="give `options` or `seeds`, not both"):
        arena.evaluate("rms_norm", "x = 1\n", options=Options(), seeds=2)


def test_screening_leaves_held_out_cases_out_unless_they_are_asked_for() -> None:
    assert not options_of({"effort": "screen"}).heldout
    assert options_of({"effort": "screen", "heldout": True}).heldout
    assert overriding({"effort": "screen"}) == {"effort": Effort.SCREEN}


def test_no_other_place_lists_the_options() -> None:
    """A class or a function that declares several of them is a second specification."""
    names = {*specs()} - {"case", "heldout", "targets"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                declared = {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                declared = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
            else:
                continue
            if path != PACKAGE / "task" / "options.py":
                assert len(declared & names) <= MOST_NAMES_BY_CHANCE, f"{path}:{node.lineno} {node.name}"
