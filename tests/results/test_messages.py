"""The catalogue of messages: every code is used, every use is right, and details of verdicts come from it alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import arena
from arena.cli.app import app
from arena.errors import UsageError
from arena.results.messages import (
    ADVICE,
    CONTEXTS,
    ITEMS,
    MEANINGS,
    MESSAGES,
    bare,
    code_of,
    for_terminal,
    item_of,
    leading_to,
    message,
    within,
)
from arena.results.verdict import Status
from arena.task.rules import RULES
from tests.tools import load

PACKAGE = Path(arena.__file__).parent
messages_page = load("figures.messages")
HOME = PACKAGE / "results/messages.py"
CODE = sorted(path for path in PACKAGE.rglob("*.py") if path != HOME)
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in CODE}
INTERNAL = re.compile(r"\b(?:templates?|desks?|channels?|spots?|rounds?|passes|pass|hosts?|sets?)\b")
ALLOWED = {"copies_to_cpu": "host"}
"""the CPU side, as CUDA says it"""
MOST_WORDS = 1500


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of a function by this bare name, with its place."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node


def named(call: ast.Call) -> set[str] | None:
    """Return the keywords of a call; None where some are unpacked from a mapping."""
    keywords = [keyword.arg for keyword in call.keywords]
    return None if None in keywords else {str(keyword) for keyword in keywords}


def first(call: ast.Call) -> str | None:
    """Return the first argument of a call if it is a literal string."""
    given = call.args[0] if call.args else None
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None


def test_every_code_is_used_and_every_use_names_one_with_its_values() -> None:
    used = {first(call) for _, call in calls("message")}
    quoted = {
        node.value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {*MESSAGES} - quoted == set(), "in the catalogue and nowhere else"
    assert used - {None} <= {*MESSAGES}
    for place, call in calls("message"):
        code, values = first(call), named(call)
        if code is not None and values is not None:
            assert values == MESSAGES[code].values, place


def test_every_context_is_used_with_its_values() -> None:
    used = [(place, first(call), named(call)) for place, call in calls("within")]
    assert {context for _, context, _ in used} == {*CONTEXTS}
    for place, context, values in used:
        wanted = set(re.findall(r"\{(\w+)\}", CONTEXTS[str(context)])) - {"detail"}
        assert values == wanted, place


def test_every_message_says_why_and_what_to_do_next_in_the_users_terms() -> None:
    for code, entry in MESSAGES.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", code)
        assert entry.title and entry.text and entry.why.endswith(".") and entry.todo, code
        assert not entry.todo.endswith(".") and len(entry.todo.split()) <= 10, code
        for text in (entry.title, entry.text, entry.why, entry.todo):
            for word in INTERNAL.findall(text):
                assert word == ALLOWED.get(code), f"{code}: {word}"


def test_no_detail_is_written_outside_of_the_catalogue() -> None:
    """Of failures of candidates, checks of outputs and plausibility, and items of tasks that do not hold."""
    literal = (ast.JoinedStr, ast.Constant, ast.BinOp)
    places = {"CandidateFailed": 1, "OutputCheck": 1, "CheckItem": 2, "Verdict": 2}
    for name, at in places.items():
        for place, call in calls(name):
            passes = any(isinstance(one, ast.Attribute) and one.attr in ("PASSED", "DECLARED") for one in call.args)
            if passes or place.startswith("results/") or len(call.args) <= at:
                continue
            given = call.args[at]
            counters = place.startswith("judge/performance/counters.py")  # feedback that changes no verdict
            assert counters or not isinstance(given, literal), f"{place}: {ast.unparse(given)}"
    tree = TREES[PACKAGE / "judge/performance/plausibility.py"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            status, detail = node.value.elts
            told = ast.unparse(detail)
            assert not isinstance(detail, ast.JoinedStr), told
            assert not isinstance(detail, ast.Constant) or detail.value == "", f"{ast.unparse(status)}: {told}"
    for node in ast.walk(tree):
        assert not isinstance(node, ast.JoinedStr), ast.unparse(node)


def test_a_detail_ends_in_what_to_do_next_and_its_code() -> None:
    detail = message("prepares_too_long", took_ms=0.41234, calls=80, allowed_ms=0.3)
    assert detail.startswith("the candidate's process takes 0.4123 ms to get ready for a timed run of 80 calls; 0.3 ms")
    assert detail.endswith("; begin no work before the call [prepares_too_long]")
    assert code_of(within("in_case", detail, case="M=4")) == "prepares_too_long"
    assert bare(detail).endswith("by what the baseline takes")
    assert for_terminal(detail).endswith("before the call (arena explain prepares_too_long)")
    assert for_terminal(detail, told=True).endswith("before the call")


def test_a_compilers_log_stays_in_front() -> None:
    detail = message("compiler_refused", log="a.hip:1: error: x\n1 error\n")
    assert detail == "a.hip:1: error: x\n1 error\nNext: correct the first error [compiler_refused]"
    assert bare(detail) == "a.hip:1: error: x\n1 error"


@pytest.mark.parametrize("said", ["out is 3 of 4", "1 of 2; 3 of 4"])
@pytest.mark.parametrize("separator", ["; ", "\nNext: "])
def test_a_detail_is_bare_of_what_an_older_catalogue_advised(said: str, separator: str) -> None:
    assert bare(f"{said}{separator}what was advised then [output_wrong]") == said


def test_no_advice_holds_a_separator() -> None:
    assert not [code for code, entry in MESSAGES.items() if ADVICE in entry.todo or "\n" in entry.todo]


def test_a_code_is_told_once_and_unknown_ones_are_text() -> None:
    two = "\n".join(message("symbol_not_allowed", name=name) for name in ("system", "fork"))
    assert for_terminal(two).count("(arena explain symbol_not_allowed)") == 1
    assert for_terminal("an old detail [of_nobody]") == "an old detail [of_nobody]"
    assert code_of("an old detail") == "" and bare("an old detail") == "an old detail"


def test_explain_shows_messages_by_stage_by_status_and_alone() -> None:
    every = CliRunner().invoke(app, ["explain"]).output
    assert all(f"  {code} " in every for code in MESSAGES)
    of_status = CliRunner().invoke(app, ["explain", "timing_mismatch"]).output
    listed = {code for code in MESSAGES if f"  {code} " in of_status}
    assert listed == {*leading_to(Status.TIMING_MISMATCH)} and "clocks_disagree" in listed
    alone = CliRunner().invoke(app, ["explain", "prepares_too_long"]).output
    assert MESSAGES["prepares_too_long"].why in alone and "TOOK_MS ms to get ready" in alone
    assert "Examples" in CliRunner().invoke(app, ["explain", "--help"]).output


def test_explain_knows_items_of_the_check() -> None:
    assert {code for code in MESSAGES if code.startswith("check_")} <= {
        one for codes in ITEMS.values() for one in codes
    }
    assert all({*codes} <= {*MESSAGES} for codes in ITEMS.values())
    for rule in RULES:
        assert rule.name in ITEMS, rule.name
    page = (PACKAGE.parent / "docs/contribute/check-failures.md").read_text(encoding="utf-8")
    for name in re.findall(r"^\| `([^`…]+)` \|", page.partition("## Bounds of speed")[0], re.MULTILINE):
        assert name in ("schema",) or item_of(name), name
    for typed, code in ((["arithmetic"], "check_arithmetic"), (["held-out", "kinds"], "check_few_kinds")):
        assert f"{code}: " in CliRunner().invoke(app, ["explain", *typed]).output
    assert (item_of("reach of M"), item_of("x matters"), item_of("nothing")) == ("reach of AXIS", "INPUT matters", "")
    assert "exceptions: arithmetic:" in CliRunner().invoke(app, ["explain", "arithmetic"]).output


def test_explain_says_what_a_status_means() -> None:
    assert {*MEANINGS} == {*Status}
    said = CliRunner().invoke(app, ["explain", "not_run"]).output
    assert "not reached" in said and "emulator lacks an instruction" in said and "instruction_unknown" in said


def test_values_that_are_texts_are_described() -> None:
    for code, entry in MESSAGES.items():
        assert re.search(r"[a-z]", entry.template), code
    assert "<what the compiler" in CliRunner().invoke(app, ["explain", "compiler_refused"]).output


@pytest.mark.parametrize(
    ("typed", "nearest"), [("prepare_too_long", "prepares_too_long"), ("roofline", "below_roofline")]
)
def test_explain_names_the_nearest_codes(typed: str, nearest: str) -> None:
    shown = CliRunner().invoke(app, ["explain", typed])
    assert isinstance(shown.exception, UsageError) and nearest in str(shown.exception)


def test_the_page_is_that_of_the_catalogue_and_short() -> None:
    text = (PACKAGE.parent / messages_page.PAGE).read_text(encoding="utf-8")
    assert text == messages_page.page(), "make claims"
    assert len(re.findall(r"[\w'.-]*\w[\w'.-]*", text)) <= MOST_WORDS
