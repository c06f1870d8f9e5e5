"""Definitions of models: what a file may say, what it stands for here, and what is missing."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from arena.agents import make_agent
from arena.agents.base import AgentSpec
from arena.agents.chat import definition as definitions
from arena.agents.chat.agent import ModelAgent
from arena.agents.chat.definition import ModelDefinition, load_model, load_models, target_of
from arena.agents.definition import Price, load_definitions
from arena.errors import FileError, UsageError
from arena.results.session import Limits
from arena.runs.config import find_config, load_config
from arena.task.corpus.strict_yaml import SCHEMAS

SMALL = "name: mine\nabout: A test.\nbase_url: http://127.0.0.1:1/v1\nmodel: m\n"
FULL = """\
name: mine
about: A test.
base_url: $MINE_URL
model: $MINE_MODEL
api_key_env: MINE_KEY
temperature: 0.7
max_tokens: 100
options: {reasoning_effort: high}
samples: 2
turns: 3
parallel: 4
retries: 1
silence_s: 5
price: {input: 1, output: 2}
limits: {tokens: 1000}
"""
SET = {"MINE_URL": "https://models.example/v1", "MINE_MODEL": "m", "MINE_KEY": "k"}


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_field_is_read(tmp_path: Path) -> None:
    found = load_model(written(tmp_path, FULL))
    assert (found.samples, found.turns, found.parallel, found.retries, found.silence_s) == (2, 3, 4, 1, 5)
    assert (found.temperature, found.max_tokens, found.options) == (0.7, 100, {"reasoning_effort": "high"})
    assert found.price == Price(1, 2) and found.limits == Limits(tokens=1000)
    target = target_of(found, SET)
    assert (target.url, target.model, target.key) == ("https://models.example/v1", "m", "k")


def test_the_schema_and_the_class_have_the_same_fields() -> None:
    schema = json.loads((SCHEMAS / "model.json").read_text(encoding="utf-8"))["properties"]
    assert set(schema) == {one.name for one in fields(ModelDefinition)} - {"path"}


def test_the_page_has_every_field() -> None:
    page = (Path(__file__).parents[3] / "docs/evaluate/agents.md").read_text(encoding="utf-8")
    assert [one.name for one in fields(ModelDefinition) if one.name != "path" and f"`{one.name}`" not in page] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SMALL + "sampels: 3\n", "mine.yaml:5: `sampels`: unknown key"),
        (SMALL + "samples: 0\n", "mine.yaml:5: `samples`"),
        (SMALL + "api_key_env: sk-live-123\n", "`api_key_env`"),
        (SMALL.replace("http://127.0.0.1:1/v1", "localhost:8000"), "mine.yaml:3: `base_url`"),
        (SMALL.replace("127", "user:secret@127"), "a key does not belong into an address"),
        (SMALL.replace("/v1", "/v1?key=secret"), "a key does not belong into an address"),
        (SMALL.replace("127.0.0.1:1", ""), "expected an address such as"),
    ],
)
def test_a_fault_names_its_line_and_repeats_no_key(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(FileError) as raised:
        load_model(written(tmp_path, text))
    assert fault in str(raised.value) and "secret" not in str(raised.value)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    definition = load_model(written(tmp_path, FULL))
    assert ModelAgent("mine", definition, environ={}).lacks() == "set MINE_URL and MINE_MODEL and MINE_KEY"
    assert ModelAgent("mine", definition, environ={**SET, "MINE_KEY": " "}).lacks() == "set MINE_KEY"
    wrong = ModelAgent("mine", definition, environ={**SET, "MINE_URL": "models.example"}).lacks()
    assert wrong.startswith("$MINE_URL: expected an address")
    assert ModelAgent("mine", definition, environ=SET).lacks() == ""
    unnamed = load_model(written(tmp_path, SMALL.replace("model: m\n", "")))
    assert "name a `model`" in ModelAgent("mine", unnamed).lacks()
    assert ModelAgent("mine", unnamed, "named").lacks() == ""


def test_without_the_library_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "LIBRARY", "no-such-library")
    lacks = ModelAgent("mine", load_model(written(tmp_path, SMALL))).lacks()
    assert lacks == "the library no-such-library is not installed: pip install 'unseen-arena[model]'"


def test_a_run_configuration_names_a_shipped_one_or_a_file(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    config = tmp_path / "run.yaml"
    items = "  - {kind: ./mine.yaml, limits: {tokens: 7}}\n  - {kind: model_samples, model: other, name: eight}\n"
    config.write_text(f"tasks: ['*']\nagents:\n{items}", encoding="utf-8")
    mine, eight = map(make_agent, load_config(config).agents)
    assert isinstance(mine, ModelAgent) and isinstance(eight, ModelAgent)
    assert (mine.name, mine.limits) == ("mine", Limits(tokens=7)) and eight.name == "eight"


def test_the_shipped_ones_are_the_four_modes() -> None:
    modes = {name: (found.samples > 1, found.turns > 1) for name, found in load_models().items()}
    assert modes == {
        "model": (False, False),
        "model_samples": (True, False),
        "model_refine": (False, True),
        "model_refine_samples": (True, True),
    }
    assert not set(modes) & set(load_definitions())
    used = {spec.kind for spec in load_config(find_config("models")).agents}
    assert used <= set(modes)
    with pytest.raises(UsageError, match=r"unknown kind 'modle'; .*model_refine"):
        make_agent(AgentSpec("modle", "modle"))


def test_a_file_named_otherwise_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, SMALL).rename(tmp_path / "other.yaml")
    with pytest.raises(FileError, match=r"name the file mine\.yaml"):
        load_models(tmp_path)
