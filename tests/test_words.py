"""The rules in tools/vale, applied to pages, help texts, templates, docstrings and names without Vale itself."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
VALE = ROOT / "tools" / "vale"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "reports/README.md"]
SHIPPED = ROOT / "arena/semantics"
"""texts of tasks: a word there is part of their hashes"""
CODE = sorted(path for path in (ROOT / "arena").rglob("*.py") if SHIPPED not in path.parents)
_FENCED = re.compile(r"^```.*?^```|^(?: {4}|\t)[^\n]*$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])[*)]*\s+(?=[A-Z*`\[0-9(])|\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ?)")


def rule(name: str) -> dict[str, Any]:
    """A rule file, with the number in its line `# ceiling: N`."""
    text = (VALE / name).read_text(encoding="utf-8")
    ceiling = re.search(r"^# ceiling: (\d+)$", text, re.MULTILINE)
    return {**yaml.safe_load(text), "ceiling": int(ceiling[1]) if ceiling else 0}


def prose(page: Path) -> str:
    """A page without code, and links without their targets."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "`x`", text))


def texts() -> Iterator[tuple[str, str]]:
    """Where, and what: pages, templates, and each comment and string of more than one word in the package."""
    for page in PAGES:
        yield str(page.relative_to(ROOT)), prose(page)
    for template in sorted((ROOT / "arena").rglob("*.j2")):
        yield template.name, re.sub(r"\{[{%#].*?[}%#]\}|<[^>]*>", " ", template.read_text(encoding="utf-8"), flags=re.S)
    for path in CODE:
        source, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield f"{name}:{node.lineno}", re.sub(r"`[^`\n]*`", "`x`", node.value)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield f"{name}:{token.start[0]}", token.string


def found(rule: dict[str, Any], text: str) -> list[str]:
    """The findings of a rule in one text; phrases may go over the end of a line."""
    words = rule.get("swap") or dict.fromkeys(rule.get("tokens", []), "")
    flags, text = re.IGNORECASE if rule.get("ignorecase") else 0, " ".join(text.split())
    allowed = set(rule.get("exceptions") or ())
    hits = [
        (match[0], better) for bad, better in words.items() for match in re.finditer(rf"\b(?:{bad})\b", text, flags)
    ]
    return [f"{hit} -> {better}" for hit, better in hits if not {hit, text} & allowed]


def long_sentences(rule: dict[str, Any], page: Path) -> list[str]:
    """Sentences with more words than the rule allows; cells of tables are none."""
    lines = [line for line in prose(page).splitlines() if not line.lstrip().startswith(("|", "#"))]
    sentences = _SENTENCE.split("\n".join(lines))
    return [" ".join(text.split()) for text in sentences if len(re.findall(rule["token"], text)) > rule["max"]]


def names() -> Iterator[tuple[str, str]]:
    """Modules, classes and functions of the package, and their names in words."""
    for path in CODE:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        for name in [path.stem, *defined]:
            yield f"{path.relative_to(ROOT)}: {name}", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


@pytest.mark.parametrize("path", sorted((VALE / "Arena").glob("*.yml")), ids=lambda path: path.stem)
def test_the_prose_keeps_the_rule(path: Path) -> None:
    checked = rule(f"Arena/{path.name}")
    if checked["extends"] == "occurrence":
        assert {page.name: long for page in PAGES if (long := long_sentences(checked, page))} == {}
        return
    assert [f"{where}: {hit}" for where, text in texts() for hit in found(checked, text)] == []


def test_names_keep_the_rule_or_are_listed() -> None:
    checked = rule("Names/Identifiers.yml")
    assert [f"{where}: {hit}" for where, name in names() for hit in found(checked, name)] == []


def test_docstrings_begin_with_what_is_done() -> None:
    checked, hits = rule("Names/Docstrings.yml"), 0
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                hits += len(found(checked, ast.get_docstring(node) or ""))
    assert hits <= checked["ceiling"]


@pytest.mark.parametrize(("name", "text"), [("Terms", "It looks\nat a kernel."), ("Metaphors", "Doubted, by a wall.")])
def test_a_rule_finds_what_it_is_for(name: str, text: str) -> None:
    assert found(rule(f"Arena/{name}.yml"), text)


def test_a_sentence_of_26_words_is_long(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("One " * 25 + ".\n\n" + "One " * 26 + ".\n", encoding="utf-8")
    assert len(long_sentences(rule("Arena/SentenceLength.yml"), page)) == 1
