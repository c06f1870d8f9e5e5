"""The OpenReward environment by the package's own client, over the loopback address."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("openreward", reason="needs the extra `openreward`; run tools/external.sh openreward")

import uvicorn
from openreward import OpenReward
from openreward.api.errors import ToolCallError

from arena.errors import ArenaError
from arena.integrations.asking import RewardScheme
from arena.integrations.openreward_server import NAME, openreward_server
from tests.external.conftest import TASK, Address
from tests.external.rewards import SPEEDUPS, WRONG, expected


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def environment(server: Address, scheme: RewardScheme = RewardScheme.DENSE) -> Iterator[Any]:
    """The client's view of an environment that is served in a thread."""
    port = free_port()
    app = openreward_server(*server, "agent", scheme).app
    served = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=served.run)
    thread.start()
    try:
        while not served.started:
            time.sleep(0.05)
        yield OpenReward(api_key="").environments.get(NAME, base_url=f"http://127.0.0.1:{port}")
    finally:
        served.should_exit = True
        thread.join()


@pytest.mark.parametrize("scheme", RewardScheme)
def test_rewards_a_budget_and_the_end(fake: Address, scheme: RewardScheme) -> None:
    with environment(fake, scheme) as found:
        assert found.list_splits() == ["triton2triton", "triton2triton/suite"]
        assert {tool.name for tool in found.list_tools()} == {"run_kernel", "finish"}
        tasks = found.list_tasks("triton2triton")
        assert [task.task_spec["split"] for task in tasks] == ["train", "train"]
        with found.session(task=tasks[0]) as session:
            assert any("reference.py" in block.text for block in session.get_prompt())
            for kernel in ("# fast", WRONG, "# slow"):
                step = session.call_tool("run_kernel", {"kernel": kernel})
                assert (step.reward, step.finished) == (expected(kernel, scheme), False)
            refused = session.call_tool("run_kernel", {"kernel": "# fast"})
            assert refused.reward is None and "evaluations are used up" in refused.blocks[0].text
            final = session.call_tool("finish", {})
            assert (final.reward, final.finished) == (0.0, True)
            key = "reward" if scheme is RewardScheme.DENSE else "bounded_reward"
            assert final.metadata[key] == expected("# fast", scheme) and final.metadata["speedup"] == SPEEDUPS["# fast"]
            with pytest.raises(ToolCallError, match="finished"):
                session.call_tool("run_kernel", {"kernel": "# fast"})


def test_a_judge_that_fails_is_an_error_without_a_reward(failing: Address) -> None:
    with environment(failing) as found, found.session(task=found.list_tasks("triton2triton")[0]) as session:
        for tool in ("run_kernel", "finish"):
            with pytest.raises(Exception, match=r"503: .*no verdict"):
                session.call_tool(tool, {"kernel": "# fast"})


def test_a_wrong_token_is_an_error_at_the_start(fake: Address) -> None:
    with pytest.raises(ArenaError, match="401"):
        openreward_server(fake.address, "wrong", "agent", RewardScheme.DENSE)


def test_an_episode_of_the_command(judge: Address) -> None:
    port = free_port()
    command = [sys.executable, "-m", "arena", "openreward", "--server", judge.address, "--port", str(port)]
    with subprocess.Popen(command, env={**os.environ, "ARENA_TOKEN": judge.token}) as process:
        try:
            _wait_for(port, process)
            found = OpenReward(api_key="").environments.get(NAME, base_url=f"http://127.0.0.1:{port}")
            (task,) = found.list_tasks("triton2triton/normalization")
            assert task.task_spec["task"] == TASK
            with found.session(task=task) as session:
                broken = session.call_tool("run_kernel", {"kernel": "def rms_norm(:"})
                assert broken.reward == -5.0 and broken.metadata["result"]["status"] == "compile_error"
                kernel = next(block.text for block in session.get_prompt() if block.text.startswith("`kernel.py`"))
                right = session.call_tool("run_kernel", {"kernel": kernel.split("```\n")[1].split("\n```")[0]})
                assert right.metadata["result"]["status"] == "passed" and right.reward > -1
                final = session.call_tool("finish", {})
                assert final.reward == 0.0 and final.metadata["heldout"]["cases"] >= 2
                print(right.reward, final.metadata["text"])  # noqa: T201
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
