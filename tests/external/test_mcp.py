"""The MCP server by the protocol's own client: in process, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`; run tools/external.sh mcp")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from arena.integrations.mcp_server import TaskTools, mcp_server
from tests.external.conftest import TASK, Address
from tests.external.rewards import SPEEDUPS, WRONG, changed, expected

_ARENA = [sys.executable, "-m", "arena", "mcp"]


def in_process(server: Address, talk: Callable[[Client], Awaitable[None]], attempt: int = 1) -> None:
    async def go() -> None:
        async with Client(mcp_server(TaskTools(*server, "agent", attempt))) as client:
            await talk(client)

    asyncio.run(go())


async def call(client: Client, tool: str, **arguments: object) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    return answer.structured_content


def test_the_tools_and_their_errors(fake: Address) -> None:
    async def talk(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "list_tasks", "get_task", "evaluate", "finish"
        }  # fmt: skip
        assert len((await call(client, "list_tasks"))["tasks"]) == 2
        assert not (await call(client, "list_tasks", split="evaluation"))["tasks"]
        task = await client.call_tool("get_task", {"task": "scale"})
        assert "## reference.py" in task.content[0].text and task.structured_content["kernel_file"] == "kernel.py"
        unknown = await client.call_tool("evaluate", {"task": "nothing", "kernel": "# fast"})
        assert unknown.is_error and "404" in unknown.content[0].text
        assert (await call(client, "finish", task="scale", kernel="# fast"))["reward"] == 1.0
        over = await client.call_tool("evaluate", {"task": "scale", "kernel": "# fast"})
        assert over.is_error and "the episode is finished" in over.content[0].text

    in_process(fake, talk)


def test_an_episode_goes_on_after_a_restart_and_another_attempt_is_new(fake: Address) -> None:
    async def talk(client: Client) -> None:
        numbers.append((await call(client, "evaluate", task="scale", kernel="# same"))["evaluation"])

    numbers: list[int] = []
    for attempt in (1, 1, 2):
        in_process(fake, talk, attempt)
    assert numbers == [1, 2, 1]


def test_a_judge_that_fails_is_an_error_and_not_counted(failing: Address) -> None:
    async def talk(client: Client) -> None:
        lost = await client.call_tool("evaluate", {"task": "scale", "kernel": "# fast"})
        assert lost.is_error and "503" in lost.content[0].text
        lost = await client.call_tool("finish", {"task": "scale", "kernel": "# fast"})
        assert lost.is_error and "503" in lost.content[0].text

    in_process(failing, talk)


@pytest.mark.parametrize("scheme", ["dense", "bounded"])
def test_rewards(fake: Address, scheme: str) -> None:
    key = "reward" if scheme == "dense" else "bounded_reward"

    async def talk(client: Client) -> None:
        for number, kernel in enumerate((*SPEEDUPS, WRONG)):
            task = ("scale", "scale_too")[number // 2]
            assert (await call(client, "evaluate", task=task, kernel=kernel))[key] == expected(kernel, scheme)
        assert (await call(client, "finish", task="scale"))[key] == expected("# same", scheme)

    in_process(fake, talk)


async def whole_episode(client: Client) -> None:
    """List, read, fail, pass, finish: with the real judge."""
    (listed,) = (await call(client, "list_tasks"))["tasks"]
    assert listed["task"] == TASK
    kernel = (await call(client, "get_task", task=TASK))["kernel"]
    broken = await call(client, "evaluate", task=TASK, kernel="def rms_norm(:")
    assert (broken["result"]["status"], broken["reward"], broken["bounded_reward"]) == ("compile_error", -5.0, 0.0)
    right = await call(client, "evaluate", task=TASK, kernel=changed(kernel))
    assert right["result"]["status"] == "passed" and right["reward"] > -1
    final = await call(client, "finish", task=TASK)
    assert final["outcome"] == "solved" and final["heldout"]["cases"] >= 2
    print(final["text"], final["reward"], final["bounded_reward"])  # noqa: T201


def test_an_episode_over_stdio(judge: Address) -> None:
    environment = {**os.environ, "ARENA_URL": judge.address, "ARENA_TOKEN": judge.token}
    parameters = StdioServerParameters(command=_ARENA[0], args=[*_ARENA[1:], "--agent", "stdio"], env=environment)

    async def go() -> None:
        async with Client(stdio_client(parameters)) as client:
            await whole_episode(client)

    asyncio.run(go())


def test_an_episode_over_http_on_the_loopback_address(judge: Address) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*_ARENA, "--server", judge.address, "--http", "--port", str(port), "--agent", "http"]
    with subprocess.Popen(command, env={**os.environ, "ARENA_TOKEN": judge.token}) as process:
        try:
            _wait_for(port)
            asyncio.run(_over_http(port))
        finally:
            process.terminate()


async def _over_http(port: int) -> None:
    async with Client(f"http://127.0.0.1:{port}/mcp") as client:
        await whole_episode(client)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
