"""The command line as a person uses it: help, listings, exit codes, and what the help promises."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from arena import __version__, compare, load_run
from arena.checks.tasks.rules import rule_items
from arena.cli.app import app
from arena.errors import UsageError
from arena.runs import records
from arena.runs.config import find_config, load_config
from arena.task.corpus.scaffolding import unfinished
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import TaskType
from arena.task.rules import LEAST_HELDOUT, LEAST_HELDOUT_KINDS, RuleLevel
from tests.reports import builders
from tests.task.corpus.folders import write_task


def commands(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every command and group of the tree by its words; the program itself has none."""
    yield path
    for name, command in getattr(node, "commands", {}).items():
        yield from commands(command, (*path, name))


COMMANDS = [*commands(get_command(app))]
ROOT = Path(__file__).parent.parent.parent


def arena(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the real program."""
    command = [sys.executable, "-c", "from arena.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=110, check=False)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words) or "arena")
def test_every_help_ends_in_examples(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    _, *after = shown.output.split("Examples")
    assert after and " ".join(("arena", *command)) in after[-1]


def test_the_tree_has_every_command() -> None:
    """At least as many as there were; `tasks` and what is in it count one each."""
    assert len(COMMANDS) >= 35 and {("tasks", "release"), ("yardstick",), ("export", "harbor")} <= {*COMMANDS}


def test_the_configurations_and_agents_of_examples_exist() -> None:
    shown = " ".join(" ".join(CliRunner().invoke(app, [*command, "--help"]).output.split()) for command in COMMANDS)
    for name in {*re.findall(r"arena run (\w+) ", shown)}:
        load_config(find_config(name))
    agents = {agent.name for agent in load_config(find_config("quickstart")).agents}
    for compared in re.findall(r"arena compare runs/quickstart runs/quickstart (--\S+ \S+ --\S+ \S+)", shown):
        assert {*compared.split()[1::2]} <= agents and len({*compared.split()[1::2]}) == 2
    assert "runs/quickstart runs/quickstart --first-agent" in shown


def test_the_module_and_the_command_say_their_version() -> None:
    done = subprocess.run([sys.executable, "-m", "arena", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"arena {__version__}\n" == CliRunner().invoke(app, ["--version"]).stdout


def test_a_corpus_of_ones_own_is_listed_and_shown(tmp_path: Path) -> None:
    write_task(tmp_path)
    listed = CliRunner().invoke(app, ["tasks", "list", "--tasks-dir", str(tmp_path), "--json"])
    (task,) = msgspec.json.decode(listed.stdout)
    assert (task["id"], task["seen"], task["dtypes"]) == ("triton2triton/suite/scale", 5, ["float16", "float32"])
    assert (task["type"], task["suite"], task["operator"], task["heldout"]) == (
        *("triton2triton", "suite", "suite/scale"),
        5,
    )
    assert (task["family"], task["has_expert"], task["has_baseline_kernel"]) == ("scale", False, True)
    assert "scale" in CliRunner().invoke(app, ["tasks", "show", "scale", "--tasks-dir", str(tmp_path)]).stdout


@pytest.mark.parametrize(("written", "problem"), [("[", "not valid YAML"), ("- {N: 3}", "seen.yaml")])
def test_a_malformed_task_is_listed_with_what_is_wrong(tmp_path: Path, written: str, problem: str) -> None:
    task = write_task(tmp_path)
    (task / "seen.yaml").write_text(written, encoding="utf-8")
    command = ["tasks", "list", "--tasks-dir", str(tmp_path)]
    assert problem in CliRunner().invoke(app, command).stdout
    assert problem in msgspec.json.decode(CliRunner().invoke(app, [*command, "--json"]).stdout)[0]["problem"]


@pytest.mark.parametrize(
    ("width", "heading"),
    [(40, "task"), (80, "task seen held-out expert"), (150, "task seen held-out expert computes")],
)
def test_tasks_list_has_a_line_a_task_and_whole_ids(monkeypatch: pytest.MonkeyPatch, width: int, heading: str) -> None:
    monkeypatch.setattr("arena.cli.console.out._width", width)
    lines = CliRunner().invoke(app, ["tasks", "list", "hip2hip/*"]).output.splitlines()
    names = sorted(str(path.parent.relative_to(TASKS)) for path in (TASKS / "hip2hip").glob("*/*/task.yaml"))
    assert lines[0].split() == heading.split()
    assert [line.split()[0] for line in lines[1:-1]] == names
    assert width == 40 or max(map(len, lines)) <= width


def test_tasks_list_counts_by_type() -> None:
    shown = CliRunner().invoke(app, ["tasks", "list"])
    assert shown.exit_code == 0
    folders = {kind: len(list((TASKS / kind).glob("*/*/task.yaml"))) for kind in TaskType}
    counted = ", ".join(f"{count} {kind}" for kind, count in folders.items())
    assert f"{counted}: {sum(folders.values())} in all" in shown.output


def test_tasks_show_prints_the_signature_for_machines_too() -> None:
    shown = CliRunner().invoke(app, ["tasks", "show", "hip2hip/modules/softmax"])
    assert 'extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream);' in shown.output
    assert "[M, N]" in shown.output and "strides" in shown.output
    as_json = CliRunner().invoke(app, ["tasks", "show", "rms_norm", "--json"])
    assert [one["name"] for one in msgspec.json.decode(as_json.stdout)["arguments"]] == ["x", "weight", "eps", "y"]
    assert msgspec.json.decode(as_json.stdout)["id"] == "triton2triton/normalization/rms_norm"


def test_the_hint_of_a_new_task_names_its_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "my tasks"
    said = CliRunner().invoke(app, ["tasks", "new", "triton2triton", "fresh", "--tasks-dir", str(folder)]).output
    hint = said.split("then: ")[1].strip()
    assert hint == f"arena tasks check fresh --tasks-dir '{folder}'"
    shown = CliRunner().invoke(app, ["tasks", "show", *shlex.split(hint)[3:]])
    assert "triton2triton/modules/fresh" in shown.output


@pytest.mark.parametrize("task_type", ["triton2triton", "hip2hip"])
def test_a_new_task_keeps_the_strict_rules_but_for_its_todos(tmp_path: Path, task_type: str) -> None:
    CliRunner().invoke(app, ["tasks", "new", task_type, "fresh", "--tasks-dir", str(tmp_path)])
    task = load_task(tmp_path / task_type / "modules" / "fresh")
    failed = {item.name: item.detail for item in rule_items(task, RuleLevel.STRICT) if item.outcome == "failed"}
    assert set(failed) == {"finished"} and "arithmetic" in task.exceptions
    lines = unfinished(task.path)
    assert failed["finished"].startswith(f"{len(lines)} lines say TODO: ")
    assert len(re.findall(r"[:,] ?\d+", failed["finished"])) == len(lines)
    text = (task.path / "heldout.yaml").read_text(encoding="utf-8")
    assert f"at least {LEAST_HELDOUT} cases of {LEAST_HELDOUT_KINDS} kinds" in text


@pytest.mark.slow
def test_a_malformed_task_counts_among_those_that_were_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_task(tmp_path / "tasks", seen="[")
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["tasks", "check", ".", "--platform", "cpu", "--out", str(tmp_path / "checks")])
    assert done.exit_code == 1
    assert "0 of 1 tasks passed" in done.output and "seen.yaml:2: not valid YAML" in done.output
    assert "1 of these tasks could not be checked, since a file is malformed" in done.output


def test_several_agents_are_compared_by_name(tmp_path: Path) -> None:
    run = builders.run([builders.trial(agent=agent, cases=[builders.case()]) for agent in ("honest", "fast")])
    records.write_head(tmp_path, run.info)
    for trial in run.trials:
        records.write_trial(tmp_path, trial)
    typed = ["compare", str(tmp_path), str(tmp_path)]
    for given, option in (([], "--first-agent"), (["--first-agent", "fast"], "--second-agent")):
        with pytest.raises(UsageError, match=f"has several agents; name one with {option}: honest, fast"):
            CliRunner().invoke(app, [*typed, *given], catch_exceptions=False)
    done = CliRunner().invoke(app, [*typed, "--first-agent", "honest", "--second-agent", "fast"])
    assert done.exit_code == 0 and "honest" in done.output
    read = load_run(tmp_path)
    with pytest.raises(UsageError, match="has several agents; name one with second_agent=: honest, fast"):
        compare(read, read, first_agent="honest")


def test_agents_are_listed() -> None:
    shown = CliRunner().invoke(app, ["agents", "--json"])
    rows = {row["kind"]: row for row in msgspec.json.decode(shown.stdout)}
    assert {"noop", "expert", "replay", "claude_code", "codex", "command"} <= set(rows)
    assert rows["noop"]["lacks"] == "" == rows["command"]["lacks"]


def test_a_run_of_agents_that_cannot_start_does_not_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    config = tmp_path / "run.yaml"
    config.write_text("tasks: [rms_norm]\nagents:\n  - {kind: noop}\n  - {kind: codex}\n", encoding="utf-8")
    shown = CliRunner().invoke(app, ["run", str(config), "--runs-dir", str(tmp_path / "runs")])
    assert isinstance(shown.exception, UsageError)
    assert "agent codex: codex is not on PATH; install it with" in str(shown.exception)
    assert not (tmp_path / "runs").exists()


def test_an_agent_that_cannot_start_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    rows = {row["kind"]: row for row in msgspec.json.decode(CliRunner().invoke(app, ["agents", "--json"]).stdout)}
    assert "claude is not on PATH; install it with `npm install" in rows["claude_code"]["lacks"]


def test_doctor_answers_for_machines() -> None:
    shown = CliRunner().invoke(app, ["doctor", "--json"])
    names = {check["name"] for check in msgspec.json.decode(shown.stdout)}
    assert {"torch", "triton", "cpu platform", "cuda platform", "rocm platform", "hip-python"} <= names


@pytest.mark.slow(but=["did you mean", "not a run"])
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("evaluate", "rmsnorm", "README.md"), 2, "did you mean rms_norm"),
        (("evaluate", "softmax", "README.md"), 2, "several tasks"),
        (("evaluate", "rms_norm", "nowhere.py"), 2, "no such file"),
        (("evaluate", "hip2hip/modules/softmax", "tests/fakes.py"), 2, "a hip2hip task takes kernel.hip"),
        (("run", "nowhere.yaml"), 2, "shipped configurations are"),
        (("run", "configs/quickstart.yaml", "--tasks", "nothing*", "--runs-dir", "/tmp/none"), 2, "no task matches"),
        (("run", "configs/quickstart.yaml", "--agents", "codex"), 2, "no agent 'codex'"),
        (("report", "configs"), 3, "not a run folder"),
        (("clean", "--run", "configs"), 2, "nothing was deleted"),
    ],
)
def test_errors_say_what_is_wrong_and_end_with_their_code(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = arena(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_configuration_names_file_line_and_key(tmp_path: Path) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text("tasks: ['*']\nagents:\n  - {kind: noop, nmae: me}\n", encoding="utf-8")
    done = arena("run", str(config))
    assert done.returncode == 2
    assert "bad.yaml:3:" in done.stderr and "nmae" in done.stderr


def test_clean_says_first_and_deletes_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = tmp_path / "unseen-arena" / "builds" / "x"
    built.mkdir(parents=True)
    assert "would delete" in CliRunner().invoke(app, ["clean", "--dry-run"]).output
    assert built.is_dir()
    CliRunner().invoke(app, ["clean"])
    assert not built.exists()
