"""Definitions: read strictly, filled in, and complete for every agent that ships."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.agents import make_agent
from arena.agents.base import AgentSpec
from arena.agents.cli_agent import CliAgent
from arena.agents.definition import PromptBy, endpoint, fill_in, load_definition, load_definitions
from arena.agents.parsers import PARSERS
from arena.errors import FileError, UsageError
from arena.results.session import Limits
from arena.runs.config import load_config
from arena.task.corpus import strict_yaml

PLAIN = """\
name: mine
about: A program of mine.
command: [mine, --home, "${HOME}", "${PROMPT}"]
prompt: argument
events: text
"""


def write(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults(tmp_path: Path) -> None:
    mine = load_definition(write(tmp_path, PLAIN))
    assert (mine.prompt, mine.limits, mine.network, mine.device) == (PromptBy.ARGUMENT, Limits(), (), True)


@pytest.mark.parametrize(
    ("more", "line", "says"),
    [
        ("modle: [x]\n", 6, "unknown key"),
        ("limits: {wall_clock_s: 0}\n", 6, "0"),
        ("network: [api.example.org]\n", 6, "has no port"),
        ("network: [$BASE_URL]\n", 6, "must also be listed in `passes`"),
        ("environment: {A: '${NOWHERE}'}\n", 6, "nothing sets NOWHERE"),
        ("files: {.rc: '${SECRET}'}\n", 6, "nothing sets SECRET"),
        ("model: ['${MODLE}']\n", 6, "nothing sets MODLE"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, more: str, line: int, says: str) -> None:
    with pytest.raises(FileError) as caught:
        load_definition(write(tmp_path, PLAIN + more))
    assert caught.value.line == line and says in str(caught.value) and "mine.yaml" in str(caught.value)


def test_a_file_is_named_like_its_agent(tmp_path: Path) -> None:
    write(tmp_path, PLAIN, "other")
    with pytest.raises(FileError, match=r"name the file mine\.yaml"):
        load_definitions(tmp_path)


def test_filling_in() -> None:
    assert fill_in("a ${B} $B $5 ${UNSET}.", {"B": "b"}) == "a b $B $5 ${UNSET}."


@pytest.mark.parametrize(
    ("entry", "url", "expected"),
    [
        ("api.example.org:443", "", "api.example.org:443"),
        ("$URL", "https://api.example.org/v1", "api.example.org:443"),
        ("$URL", "http://127.0.0.1:8123", "127.0.0.1:8123"),
        ("$URL", "http://example.org", "example.org:80"),
        ("$URL", "", ""),
    ],
)
def test_endpoints(entry: str, url: str, expected: str) -> None:
    assert endpoint(entry, {"URL": url}) == expected


def test_an_endpoint_that_is_no_url() -> None:
    with pytest.raises(UsageError, match="URL=nonsense is not a URL"):
        endpoint("$URL", {"URL": "nonsense"})


def test_every_shipped_definition_loads_and_has_a_parser() -> None:
    shipped = load_definitions()
    assert {"claude_code", "codex", "cursor", "gemini_cli", "opencode", "mini_swe_agent", "command"} <= set(shipped)
    for definition in shipped.values():
        parser = PARSERS[definition.events]()
        assert list(parser.feed("this is no event of any program")) and parser.error == ""
        assert definition.about


def test_every_format_of_the_schema_has_a_parser() -> None:
    import msgspec

    schema = msgspec.json.decode((strict_yaml.SCHEMAS / "agent.json").read_bytes())
    assert set(schema["properties"]["events"]["enum"]) == set(PARSERS)


def test_a_run_configuration_changes_what_it_names(tmp_path: Path) -> None:
    write(tmp_path, PLAIN)
    path = tmp_path / "run.yaml"
    path.write_text(
        "tasks: ['*']\nagents:\n  - {kind: ./mine.yaml, name: quick, limits: {evaluations: 3}, command: [other]}\n",
        encoding="utf-8",
    )
    config = load_config(path)
    agent = make_agent(config.agents[0])
    assert isinstance(agent, CliAgent) and agent.name == "quick" and config.attempts == 3
    assert agent.limits.evaluations == 3 and agent.limits.wall_clock_s == Limits().wall_clock_s


def test_an_unknown_kind_says_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"unknown kind 'wizard'.*noop.*claude_code"):
        make_agent(AgentSpec("x", "wizard"))
