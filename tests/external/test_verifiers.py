"""The environment for verifiers by `vf-eval`, with a model on the loopback address that streams tool calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "verifiers.v1", reason="needs integrations/environments/unseen_arena; run tools/external.sh verifiers"
)

from tests.external.conftest import TASK, Address
from tests.external.loopback_model import Call, Script, model
from tests.external.rewards import WRONG, changed, expected

Message = dict[str, Any]


def evaluated(server: Address, script: Script, out: Path, *options: str) -> dict[str, Any]:
    """The trace of one rollout."""
    with model(script) as url:
        command = [
            str(Path(sys.executable).with_name("vf-eval")), "unseen-arena-env", "-n", "1", "--model", "stand-in",
            "--client.base-url", url, "--client.api-key-var", "MODEL_KEY", "--env.agent.harness.id", "null",
            "--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich", "--output-dir", str(out), *options,
        ]  # fmt: skip
        variables = {"ARENA_URL": server.address, "ARENA_TOKEN": server.token, "MODEL_KEY": "none"}
        done = subprocess.run(
            command, env={**os.environ, **variables}, cwd=out, capture_output=True, text=True, check=False, timeout=300
        )
    found = [path for path in out.rglob("traces.jsonl") if path.stat().st_size]
    assert done.returncode == 0 and found, done.stdout[-3000:] + done.stderr[-3000:]
    (line,) = found[0].read_text(encoding="utf-8").splitlines()
    (trace,) = json.loads(line)["traces"]
    assert isinstance(trace, dict)
    return trace


def in_turn(*calls: Call) -> Script:
    """Call one tool after the other, counted by the answers in the messages."""

    def script(messages: list[Message]) -> Call | None:
        done = sum(message["role"] == "tool" for message in messages)
        return calls[done] if done < len(calls) else None

    return script


@pytest.mark.parametrize(("kernel", "scheme"), [("# fast", "dense"), ("# fast", "bounded"), (WRONG, "dense")])
@pytest.mark.timeout(300)
def test_rewards(fake: Address, tmp_path: Path, kernel: str, scheme: str) -> None:
    script = in_turn(("evaluate", {"kernel": "# slow"}), ("finish", {"kernel": kernel}))
    trace = evaluated(fake, script, tmp_path, "--env.taskset.task.reward", scheme)
    assert _reward(trace) == expected(kernel, scheme), trace


@pytest.mark.timeout(300)
def test_a_judge_that_fails_is_an_error_without_a_reward(failing: Address, tmp_path: Path) -> None:
    trace = evaluated(failing, in_turn(("evaluate", {"kernel": "# fast"}), ("finish", {"kernel": "# fast"})), tmp_path)
    assert trace["errors"] and trace["rewards"] == {}, trace


@pytest.mark.timeout(300)
def test_a_rollout_with_the_real_judge(judge: Address, tmp_path: Path) -> None:
    """The model never calls finish: the best kernel gets the verdict."""

    def script(messages: list[Message]) -> Call | None:
        prompt = next(message["content"] for message in messages if message["role"] == "user")
        text = prompt if isinstance(prompt, str) else "".join(part["text"] for part in prompt)
        kernel = text.split("`kernel.py`:\n\n```\n")[1].split("\n```")[0]
        return in_turn(("evaluate", {"kernel": "def rms_norm(:"}), ("evaluate", {"kernel": changed(kernel)}))(messages)

    trace = evaluated(judge, script, tmp_path, "--env.taskset.tasks", '["triton2triton/*"]')
    told = json.dumps(trace)
    assert TASK in told and "compile_error" in told
    assert _reward(trace) > -1 and trace["metrics"]["solved"] == 1.0 and "heldout_share" in trace["metrics"]
    print(trace["rewards"], trace["metrics"])  # noqa: T201


def _reward(trace: dict[str, Any]) -> float:
    return float(trace["rewards"]["reward"]["score"])
