"""Exported folders of Harbor: what they hold, and their scripts against a server with a judge that needs no device."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from arena.cli.app import app
from arena.errors import UsageError
from arena.integrations.harbor import HarborSettings, Layout
from arena.integrations.harbor.folder import CLIENT, export, folder_name
from arena.integrations.harbor.inside import judge as client
from arena.processes.http_server import MAX_KERNEL_BYTES
from arena.results.session import Limits
from arena.runs import records
from arena.runs.serve.clients import local
from arena.runs.serve.routes import EpisodeServer
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from tests.external.rewards import SPEEDUPS, WRONG, expected
from tests.runs.serve.serving import TASK, Judge, served
from tests.runs.service.examples import CPU, environment
from tests.task.corpus.folders import write_task

ROOT = Path(__file__).parents[2]
SETTINGS = HarborSettings(Layout.URL, Limits(wall_clock_s=600, evaluations=10), "cpu", "python:3.12-slim", 0)


def exported(root: Path, settings: HarborSettings = SETTINGS) -> tuple[Path, Task]:
    place = root / "tasks" / TASK
    task = load_task(place if place.is_dir() else write_task(root / "tasks", TASK))
    return export(task, root / "harbor", environment(CPU), settings), task


def config_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))


def test_a_folder_is_complete_and_holds_nothing_held_out(tmp_path: Path) -> None:
    folder, task = exported(tmp_path)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"instruction.md", "task.toml", "environment/Dockerfile", "environment/workspace/evaluate"} <= found
    assert {"tests/test.sh", "tests/judge.py", "tests/Dockerfile", "solution/solve.sh"} <= found
    assert folder.name == folder_name(task) == "triton2triton__suite__scale"
    for name in ("environment/workspace/evaluate", "tests/test.sh", "solution/solve.sh"):
        assert os.access(folder / name, os.X_OK), name
    instruction = (folder / "instruction.md").read_text(encoding="utf-8")
    assert "# scale" in instruction and "/app/kernel.py" in instruction and "10 evaluations" in instruction
    everything = "".join((folder / name).read_text(encoding="utf-8") for name in found)
    assert "heldout.yaml" not in everything and "note: large" not in everything
    assert (folder / "solution" / "kernel.py").read_bytes() == (task.path / "kernel.py").read_bytes()


def test_the_configuration_keeps_the_full_token_from_the_agent(tmp_path: Path) -> None:
    folder, task = exported(tmp_path, replace(SETTINGS, gpus=1))
    config = config_of(folder)
    assert (config["schema_version"], config["task"]["name"]) == ("1.4", f"unseen-arena/{folder_name(task)}")
    assert config["task"]["description"] == task.summary
    assert config["verifier"]["environment_mode"] == "separate", "an agent must not reach what writes its reward"
    assert config["environment"]["env"]["ARENA_TOKEN"] == "${ARENA_AGENT_TOKEN}"
    assert config["verifier"]["env"]["ARENA_TOKEN"] == "${ARENA_TOKEN}"
    assert config["artifacts"] == ["/app/kernel.py", "/app/.judge/episode"]
    assert config["environment"]["gpus"] == 1 and config["agent"]["timeout_sec"] == 600 + 10 * 30
    assert not (folder / "environment" / "docker-compose.yaml").exists()


@pytest.mark.parametrize(("platform", "device"), [("cuda", "deploy"), ("rocm", "devices"), ("cpu", None)])
def test_a_sidecar_has_the_gpu(tmp_path: Path, platform: str, device: str | None) -> None:
    folder, task = exported(tmp_path, replace(SETTINGS, layout=Layout.SIDECAR, platform=platform))
    config = config_of(folder)
    for part, token in (("environment", "ARENA_AGENT_TOKEN"), ("tests", "ARENA_TOKEN")):
        compose = yaml.safe_load((folder / part / "docker-compose.yaml").read_text(encoding="utf-8"))
        judge = compose["services"]["judge"]
        assert judge["network_mode"] == "service:main" and judge["command"][:3] == ["arena", "serve", task.id]
        assert {"deploy", "devices"} & judge.keys() == ({device} if device else set())
        assert list(judge["environment"]) == [token]
        variables = (config["environment"] if part == "environment" else config["verifier"])["env"]
        port = judge["command"][judge["command"].index("--port") + 1]
        assert variables == {"ARENA_URL": f"http://127.0.0.1:{port}", "ARENA_TOKEN": judge["environment"][token]}


def test_a_sidecar_is_started_with_options_that_exist(tmp_path: Path) -> None:
    folder, _ = exported(tmp_path, replace(SETTINGS, layout=Layout.SIDECAR))
    compose = yaml.safe_load((folder / "environment" / "docker-compose.yaml").read_text(encoding="utf-8"))
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    context = serve.make_context("serve", compose["services"]["judge"]["command"][2:], resilient_parsing=False)
    assert (context.params["port"], context.params["evaluations"], context.params["minutes"]) == (8642, 10, 10.0)


def test_the_adapter_writes_the_same_folders(tmp_path: Path) -> None:
    adapter = ROOT / "integrations" / "adapters" / "unseen-arena" / "src"
    words = ["--output-dir", str(tmp_path / "adapter"), "--task-ids", "hip2hip__modules__softmax", "--platform", "cpu"]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{adapter}"}
    subprocess.run([sys.executable, "-m", "unseen_arena.main", *words], env=environ, check=True, timeout=60)
    command = ["export", "harbor", "--out", str(tmp_path / "arena"), "--tasks", "hip2hip/modules/softmax"]
    subprocess.run([sys.executable, "-m", "arena", *command, "--platform", "cpu"], env=environ, check=True, timeout=60)
    both = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "adapter", tmp_path / "arena")
    ]
    assert both[0] == both[1] and len(both[0]) > 10


def test_only_exported_folders_are_replaced(tmp_path: Path) -> None:
    folder, task = exported(tmp_path)
    with pytest.raises(UsageError, match="--overwrite"):
        exported(tmp_path)
    (folder / "old").touch()
    export(task, tmp_path / "harbor", environment(CPU), SETTINGS, overwrite=True)
    assert not (folder / "old").exists()
    (folder / "task.toml").unlink()
    with pytest.raises(UsageError, match="exists"):
        export(task, tmp_path / "harbor", environment(CPU), SETTINGS, overwrite=True)


def test_the_expert_is_the_solution_where_there_is_one(tmp_path: Path) -> None:
    place = write_task(tmp_path / "tasks", TASK)
    (place / "expert.py").write_text("def scale(x, bias, alpha, flag, y): return  # expert\n", encoding="utf-8")
    folder, _ = exported(tmp_path)
    assert "# expert" in (folder / "solution" / "kernel.py").read_text(encoding="utf-8")
    assert "# expert" not in (folder / "environment" / "workspace" / "kernel.py").read_text(encoding="utf-8")


def test_the_client_runs_with_old_and_small_pythons() -> None:
    tree = ast.parse(CLIENT.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported <= {"json", "os", "sys", "time", "urllib.error", "urllib.request", "evaluate"}


class Container:
    """The folders of an exported task as its two containers have them, and a server."""

    def __init__(self, root: Path, server: EpisodeServer) -> None:
        self.folder, self.task = exported(root)
        self.app = self.folder / "environment" / "workspace"
        self.verdicts = root / "logs"
        self.verdicts.mkdir(exist_ok=True)
        self._server = server

    def run(self, *words: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": os.environ["PATH"], "ARENA_URL": self._server.address}
        variables["ARENA_TOKEN"] = token or self._server.agent_token
        return subprocess.run(words, env=variables, cwd=self.app, capture_output=True, text=True, timeout=60)

    def evaluate(self, kernel: str, *options: str) -> subprocess.CompletedProcess[str]:
        (self.app / "kernel.py").write_text(kernel, encoding="utf-8")
        return self.run("./evaluate", *options)

    def verify(self, token: str | None = None) -> subprocess.CompletedProcess[str]:
        script = str(self.folder / "tests" / "judge.py")
        words = ["python3", "-Es", script, "verify", self.task.id, str(self.app / "kernel.py"), str(self.verdicts)]
        return self.run(*words, token=token or self._server.token)

    @property
    def reward(self) -> dict[str, float]:
        found: dict[str, float] = json.loads((self.verdicts / "reward.json").read_text(encoding="utf-8"))
        return found


@contextmanager
def container(root: Path) -> Iterator[tuple[Container, Judge]]:
    with (
        served(root, clients=[local(8, agent_episodes=2)]) as (episodes, judge),
        EpisodeServer(episodes) as server,
    ):
        yield Container(root, server), judge


@pytest.mark.slow(but=["fast", WRONG])
@pytest.mark.parametrize("kernel", [*SPEEDUPS, WRONG])
def test_one_key_with_the_bounded_reward(tmp_path: Path, kernel: str) -> None:
    with container(tmp_path) as (inside, _):
        first = inside.evaluate(kernel)
        assert first.returncode == (1 if kernel == WRONG else 0) and "9 are left" in first.stdout, first
        done = inside.verify()
        assert done.returncode == 0 and "reward" in done.stdout, done
        assert inside.reward == {"reward": expected(kernel, "bounded")}
        verdict = json.loads((inside.verdicts / "verdict.json").read_text(encoding="utf-8"))
        assert verdict["reward"] == expected(kernel, "dense")
    (trial,) = records.read_run(tmp_path / "run").trials
    assert trial.agent == "harbor" and trial.session is not None and len(trial.session.evaluations) == 1


def test_an_agent_gets_feedback_and_no_verdict(tmp_path: Path) -> None:
    with container(tmp_path) as (inside, judge):
        told = json.loads(inside.evaluate("# fast", "--json").stdout)
        assert told["status"] == "passed"
        assert inside.run("./evaluate", "no-such-file").returncode == 2
        refused = inside.verify(token=inside._server.agent_token)
        assert refused.returncode == 3 and "token" in refused.stderr
        assert not (inside.verdicts / "reward.json").exists(), "no verdict is no reward of 0"
        assert not any(options.heldout for options in judge.options)


def test_a_kernel_that_is_gone_or_too_large(tmp_path: Path) -> None:
    with container(tmp_path) as (inside, _):
        inside.evaluate("# fast")
        (inside.app / "kernel.py").unlink()
        assert inside.verify().returncode == 0 and inside.reward == {"reward": expected("# fast", "bounded")}
    with container(tmp_path / "large") as (inside, judge):
        judge.speeds["large"] = 1.0  # what the server was given ends in this word
        (inside.app / "kernel.py").write_text("#" * (MAX_KERNEL_BYTES + 1), encoding="utf-8")
        assert inside.verify().returncode == 0 and inside.reward == {"reward": 0.0}


@pytest.mark.slow(but=["other"])
@pytest.mark.parametrize("named", ["", "../../status", "ffffffffffffffff", "other"])
def test_an_episode_that_is_not_of_this_task_is_not_taken(tmp_path: Path, named: str) -> None:
    with container(tmp_path) as (inside, _):
        if named == "other":
            reply = inside.run("python3", "-Es", "-c", _BEGINS_ANOTHER)
            named = json.loads(reply.stdout)["episode"]
        (inside.app / ".judge" / "episode").write_text(named, encoding="ascii")
        (inside.app / "kernel.py").write_text("# fast", encoding="utf-8")
        assert inside.verify().returncode == 0 and inside.reward == {"reward": expected("# fast", "bounded")}
    (trial,) = records.read_run(tmp_path / "run").trials
    assert trial.task == TASK


def test_ready_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for url, told in (("", "ARENA_URL"), ("http://127.0.0.1:9", "refused"), ("/a/socket", "ARENA_URL")):
        monkeypatch.setenv("ARENA_URL", url)
        assert client.main(["ready"]) == 3
        assert told in capsys.readouterr().err
    with container(tmp_path) as (inside, _):
        script = str(inside.app / ".judge" / "judge.py")
        assert inside.run("python3", "-Es", script, "ready").returncode == 0
        assert inside.run("python3", "-Es", script, "ready", token="wrong").returncode == 3
        assert inside.run("python3", "-Es", script).returncode == 2


_BEGINS_ANOTHER = """
import os, urllib.request
request = urllib.request.Request(os.environ["ARENA_URL"] + "/episodes", b'{"task": "scale_too"}',
                                 {"Authorization": "Bearer " + os.environ["ARENA_TOKEN"]})
print(urllib.request.urlopen(request).read().decode())
"""
