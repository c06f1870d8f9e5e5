"""Run configurations: defaults, then the file, then the command line."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from arena.agents.base import AgentSpec
from arena.errors import FileError, UsageError
from arena.platforms.toolchains.targets import TARGETS
from arena.results.effort import Effort
from arena.results.session import Limits
from arena.runs.config import Overrides, RunConfig, find_config, load_config, override
from arena.task.corpus.strict_yaml import SCHEMAS
from arena.task.options import ARCHITECTURES

SMALL = "tasks: ['*']\nagents:\n  - {kind: noop}\n"
FULL = """\
name: full
about: everything that can be said
platform: cpu
tasks: ["hip2hip/*", "!softmax"]
attempts: 3
heldout: fresh
agents:
  - {kind: noop}
  - {name: mine, kind: replay, folder: ../candidates}
evaluation: {max_work: 1e6, seeds: 2, graphs: false}
"""
CONFIGS = Path(__file__).parents[2] / "configs"


def written(folder: Path, text: str) -> Path:
    path = folder / "configs" / "demo.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "fresh").mkdir(exist_ok=True)
    (folder / "candidates").mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_hold_where_the_file_says_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL)
    assert load_config(path) == RunConfig(
        name="demo",
        tasks=("*",),
        agents=(AgentSpec("noop", "noop"),),
        platform="auto",
        attempts=3,
        evaluation={},
        path=str(path),
        text=SMALL,
    )


def test_the_file_comes_above_the_defaults(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, FULL))
    assert (config.name, config.platform, config.attempts) == ("full", "cpu", 3)
    assert config.tasks == ("hip2hip/*", "!softmax")
    assert config.evaluation == {"max_work": 1e6, "seeds": 2, "graphs": False}
    assert config.agents == (
        AgentSpec("noop", "noop"),
        AgentSpec("mine", "replay", (tmp_path / "candidates").resolve()),
    )
    assert config.heldout == (tmp_path / "configs" / "fresh").resolve()


def test_corpora_of_ones_own(tmp_path: Path) -> None:
    """The file's paths are relative to it; those of the command line replace them."""
    (tmp_path / "tasks").mkdir()
    config = load_config(written(tmp_path, f"corpora: [../tasks]\n{SMALL}"))
    assert config.corpora == ((tmp_path / "tasks").resolve(),)
    assert override(config, Overrides(corpora=(tmp_path,))).corpora == (tmp_path,)
    with pytest.raises(FileError, match="is not a folder"):
        load_config(written(tmp_path, f"corpora: [../nowhere]\n{SMALL}"))


def test_a_configuration_is_found_by_path_and_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL)
    assert find_config(str(path)) == path and find_config("quickstart") == CONFIGS / "quickstart.yaml"
    shipped = ", ".join(sorted(path.stem for path in CONFIGS.glob("*.yaml")))
    with pytest.raises(UsageError, match=f"no such file; shipped configurations are {shipped}"):
        find_config("quickstrat")


def test_the_command_line_comes_above_the_file(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, FULL))
    changed = override(
        config,
        Overrides(
            name="other",
            platform="cuda",
            tasks=("silu",),
            agents=("mine",),
            attempts=1,
            evaluation={"max_work": 5.0, "effort": Effort.SCREEN},
        ),
    )
    assert (changed.name, changed.platform, changed.tasks, changed.attempts) == ("other", "cuda", ("silu",), 1)
    assert changed.agents == config.agents[1:]
    assert changed.evaluation == {"max_work": 5.0, "seeds": 2, "graphs": False, "effort": "screen"}
    assert config.evaluation["max_work"] == 1e6
    assert (changed.path, changed.text, changed.heldout) == (config.path, config.text, config.heldout)


def test_nothing_said_changes_nothing(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, FULL))
    assert override(config, Overrides()) == config


def test_agents_are_chosen_in_the_order_asked_for(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, FULL))
    assert [agent.name for agent in override(config, Overrides(agents=("mine", "noop"))).agents] == ["mine", "noop"]
    with pytest.raises(FileError, match="no agent 'expert' in this configuration; it has noop, mine"):
        override(config, Overrides(agents=("expert",)))


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ("attempts: 3", "attemps: 3", 5, "attemps", "unknown key; expected one of: about, agents, attempts"),
        ("attempts: 3", "attempts: 0", 5, "attempts", "less than the minimum of 1"),
        ("attempts: 3", "attempts: three", 5, "attempts", "not of type 'integer'"),
        ("attempts: 3", "attempts: 3\nattempts: 4", 6, "attempts", "key given twice, first on line 5"),
        ("platform: cpu", "platform: metal", 3, "platform", "'metal' is not one of auto, cpu, cuda, rocm"),
        ("name: full", "name: ../up", 1, "name", "does not match"),
        ("name: mine, ", "name: noop, ", 9, "agents.1", "a second agent called noop; give it a `name` of its own"),
        ("kind: noop", "knid: noop", 8, "agents.0.knid", "unknown key; expected one of: command, folder, kind, limits"),
        ("{name: mine, kind: replay,", "{name: mine,", 9, "agents.1", "'kind' is missing"),
        ("../candidates", "../nowhere", 9, "agents.1.folder", "nowhere is not a folder"),
        ("heldout: fresh", "heldout: stale", 6, "heldout", "stale is not a folder"),
        ("seeds: 2", "sedes: 2", 10, "evaluation.sedes", "unknown key; expected one of: call_timeout_s"),
        ("seeds: 2", "seeds: 2.0", 10, "evaluation.seeds", "2.0 is not of type 'integer'"),
        ("max_work: 1e6", "max_work: 0", 10, "evaluation.max_work", "minimum"),
        ("graphs: false", "graphs: no", 10, "evaluation.graphs", "'no' is not of type 'boolean'"),
        ("seeds: 2", "targets: [gfx90a, gfx94]", 10, "evaluation.targets.1", "'gfx94' is not one of gfx90a, gfx942"),
        ("seeds: 2", "targets: gfx942", 10, "evaluation.targets", "'gfx942' is not of type 'array'"),
        ("seeds: 2", "targets: [sm_90, sm_90]", 10, "evaluation.targets", "non-unique"),
        ('["hip2hip/*", "!softmax"]', "[]", 4, "tasks", "0 items given, at least 1 expected"),
    ],
)
def test_faults_name_file_line_and_key(tmp_path: Path, old: str, new: str, line: int, key: str, says: str) -> None:
    assert old in FULL
    with pytest.raises(FileError) as caught:
        load_config(written(tmp_path, FULL.replace(old, new, 1)))
    assert caught.value.path.name == "demo.yaml"
    assert (caught.value.line, caught.value.key) == (line, key)
    assert says in caught.value.problem


def test_targets_of_the_command_line_replace_those_of_the_file(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, FULL.replace("graphs: false", "targets: [gfx90a, gfx942]")))
    assert config.evaluation["targets"] == ("gfx90a", "gfx942")
    assert override(config, Overrides()).evaluation == config.evaluation
    changed = override(config, Overrides(evaluation={"targets": ("sm_90",), "max_work": 5.0}))
    assert changed.evaluation == {"max_work": 5.0, "seeds": 2, "targets": ("sm_90",)}
    assert "targets" not in load_config(written(tmp_path, FULL)).evaluation


def test_an_unknown_platform_or_agent_is_an_error(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, FULL))
    with pytest.raises(UsageError, match="unknown platform 'gpu'; expected one of: auto, cpu, cuda, rocm"):
        override(config, Overrides(platform="gpu"))
    with pytest.raises(UsageError, match=r"demo.yaml: no agent 'codex' in this configuration; it has noop, mine"):
        override(config, Overrides(agents=("codex",)))


def test_the_options_know_the_same_targets_as_the_toolchains() -> None:
    assert list(ARCHITECTURES) == list(TARGETS)


def test_limits_are_held_against_a_schema_of_their_own(tmp_path: Path) -> None:
    text = "tasks: ['*']\nagents:\n  - kind: codex\n    limits:\n      {limit}\n"
    config = load_config(written(tmp_path, text.format(limit="tokens: 5")))
    assert config.agents[0].limits == {"tokens": 5}
    for limit, key, problem in (
        ("tokens: 0", "limits.tokens", "0 is less than the minimum of 1"),
        ("tokens: 1.0", "limits.tokens", "1.0 is not of type 'integer'"),
        ("token: 5", "limits.token", "unknown key; expected one of: cost_usd, disk_bytes, evaluations, tokens, wall_"),
    ):
        with pytest.raises(FileError, match=rf"demo.yaml:5: `agents.0.{key}`: {problem}"):
            load_config(written(tmp_path, text.format(limit=limit)))


def test_the_schema_has_the_limits_that_there_are() -> None:
    schema = json.loads((SCHEMAS / "limits.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) == {field.name for field in fields(Limits)}


def test_a_fault_in_a_list_over_several_lines_names_its_line(tmp_path: Path) -> None:
    text = SMALL + "evaluation:\n  targets:\n    - gfx942\n    - sm_91\n"
    with pytest.raises(FileError, match=r"demo.yaml:7: `evaluation.targets.1`: 'sm_91' is not one of"):
        load_config(written(tmp_path, text))


def test_two_of_a_kind_need_names(tmp_path: Path) -> None:
    text = SMALL + "  - {kind: noop}\n"
    with pytest.raises(FileError, match=r"demo.yaml:4: `agents.1`: a second agent called noop"):
        load_config(written(tmp_path, text))
    named = load_config(written(tmp_path, text.replace("- {kind: noop}\n", "- {name: again, kind: noop}\n", 1)))
    assert [agent.name for agent in named.agents] == ["again", "noop"]


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configurations_load(path: Path) -> None:
    assert load_config(path).agents
