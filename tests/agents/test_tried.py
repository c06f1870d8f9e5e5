"""One file with the versions that were tried and the default models, and who reads it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from arena.agents import make_agent
from arena.agents.base import AgentSpec
from arena.agents.definition import load_definitions
from arena.agents.tried import FILE, TriedAgent, newer_than_tried, shipped_definitions, tried_agents, with_tried
from arena.cli.app import app
from arena.errors import FileError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("installed", "tried", "newer"),
    [
        ("2.1.330 (Claude Code)", "2.1.197", True),
        ("codex-cli 0.169.0", "0.169.0", False),
        ("v0.9.12", "0.10.0", False),
        ("0.10.0", "0.9.12", True),
        ("1.0.0", "0.61.0", True),
        ("", "0.61.0", False),
        ("unknown", "0.61.0", False),
        ("1.0.0", "", False),
    ],
)
def test_versions_are_compared_as_numbers(installed: str, tried: str, newer: bool) -> None:
    assert newer_than_tried(installed, tried) is newer


def test_every_shipped_definition_takes_its_version_from_the_file() -> None:
    known, shipped = tried_agents(), shipped_definitions()
    assert set(known) <= set(shipped)
    for name, facts in known.items():
        assert shipped[name].tried == facts.version and facts.version in shipped[name].install
    written = load_definitions().values()
    assert [one.name for one in written if one.tried or re.search(r"\d+\.\d+\.\d+", one.install)] == []
    assert "${VERSION}" not in "".join(one.install for one in shipped.values())


def test_no_configuration_and_no_page_names_a_version_or_a_model_of_its_own() -> None:
    texts = [*(ROOT / "configs/agents").glob("*.yaml"), ROOT / "configs/coding_agents.yaml"]
    text = "".join(path.read_text(encoding="utf-8") for path in [*texts, ROOT / "docs/evaluate/agents.md"])
    known = tried_agents()
    assert [facts.version for facts in known.values() if facts.version in text] == []
    assert re.findall(r"kind: [^}\n]*model: (?!default\b)[^,}\n]+", text) == []


def test_default_means_the_model_of_the_file_and_every_other_name_itself() -> None:
    def model(kind: str, asked: str) -> str:
        agent = make_agent(AgentSpec("x", kind, model=asked))
        return str(vars(agent)["_model"])

    assert model("mini_swe_agent", "default") == tried_agents()["mini_swe_agent"].model != ""
    assert model("mini_swe_agent", "openai/other") == "openai/other" and model("mini_swe_agent", "") == ""
    assert model("claude_code", "default") == "default"  # the program's own word for it


def test_a_definition_without_the_placeholder_stays_as_it_is() -> None:
    known = {"codex": TriedAgent("9.9.9", "m")}
    codex = load_definitions()["codex"]
    assert with_tried(codex, known).tried == "9.9.9" and with_tried(codex, known).default_model == "m"
    own = replace(codex, install="get it")
    assert with_tried(own, known) is own and with_tried(codex, {}) is codex


def test_a_malformed_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "tried.yaml"
    path.write_text(FILE.read_text(encoding="utf-8").replace("version: 0.169.0", "version: latest"), encoding="utf-8")
    with pytest.raises(FileError, match="codex"):
        tried_agents(path)


@pytest.mark.parametrize(("version", "newer"), [("999.0.0", True), ("0.0.1", False)])
def test_agents_says_where_a_program_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, newer: bool
) -> None:
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\necho codex-cli {version}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("COLUMNS", "200")
    rows = {row["kind"]: row for row in msgspec.json.decode(CliRunner().invoke(app, ["agents", "--json"]).stdout)}
    assert rows["codex"]["version"] == f"codex-cli {version}"
    assert bool(rows["codex"]["remark"]) is newer and rows["noop"]["remark"] == ""
    shown = " ".join(CliRunner().invoke(app, ["agents"]).output.split())
    assert ("newer than the version" in shown) is newer
