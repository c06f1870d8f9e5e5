"""An MCP server whose tools are episodes of `arena serve`. Needs the extra `mcp`; used by `arena mcp`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent

import arena
from arena.api.client import AsyncClient
from arena.errors import ArenaError
from arena.integrations.asking import facts, when_free

_INSTRUCTIONS = (
    "Optimize GPU kernels. list_tasks names the tasks, get_task describes one. evaluate judges a kernel on the seen "
    "cases, as often as the task's budget allows. finish ends the task with a verdict that includes held-out cases."
)


class TaskTools:
    """The four tools. Each task has one episode, named by agent, task and attempt, which a restart goes on with.

    Args:
        address: of `arena serve`, or the path of its socket.
        token: as the server prints it; empty for a socket.
        agent: the agent of the trials.
        attempt: names the episodes: another number begins every task anew.
    """

    def __init__(self, address: str, token: str, agent: str, attempt: int) -> None:
        self._address, self._token, self._agent, self._attempt = address, token, agent, attempt

    @asynccontextmanager
    async def connected(self, server: MCPServer) -> AsyncIterator[AsyncClient]:
        """Hold a client of the server while MCP clients are served."""
        async with AsyncClient(self._address, self._token) as client:
            yield client

    async def list_tasks(self, ctx: Context, split: str = "all") -> CallToolResult:
        """List the tasks. `split`: all, train or evaluation."""
        found = await _asked(lambda: _client(ctx).tasks(split))
        lines = [f"{one.task} ({one.split})" for one in found]
        return _result("\n".join(lines) or "no task is served", {"tasks": found})

    async def get_task(self, ctx: Context, task: str) -> CallToolResult:
        """Describe a task: its text, rules, seen cases, baseline kernel and reference."""
        found = await _asked(lambda: _client(ctx).task(task))
        files = "".join(f"\n\n## {name}\n\n```\n{text}\n```" for name, text in found.files.items())
        return _result(found.text + files, found)

    async def evaluate(self, ctx: Context, task: str, kernel: str, profile: bool = False) -> CallToolResult:
        """Judge a kernel, the whole text of the file, on the seen cases. `profile`: also say where the time goes."""
        client = _client(ctx)
        episode = await self._episode(client, task)
        step = await _asked(lambda: client.evaluate(episode, kernel, profile=profile))
        return _result(f"{step.text.rstrip()}\nreward {step.reward:g}", step)

    async def finish(self, ctx: Context, task: str, kernel: str | None = None) -> CallToolResult:
        """End a task: the verdict on this kernel, or on the best one so far, held-out cases included. Only once."""
        client = _client(ctx)
        episode = await self._episode(client, task)
        final = await _asked(lambda: client.finish(episode, kernel))
        return _result(f"{final.text}\nreward {final.reward:g}", final)

    async def _episode(self, client: AsyncClient, task: str) -> str:
        begun = await _asked(partial(client.begin, task, seed=self._attempt, agent=self._agent))
        return str(begun.episode)


def mcp_server(tools: TaskTools) -> MCPServer:
    """Return the server; its `run` serves stdio or HTTP."""
    server = MCPServer(
        "unseen-arena",
        instructions=_INSTRUCTIONS,
        version=arena.__version__,
        log_level="WARNING",
        lifespan=tools.connected,
    )
    for tool in (tools.list_tasks, tools.get_task, tools.evaluate, tools.finish):
        server.add_tool(tool)
    return server


def _client(context: Context) -> AsyncClient:
    client: AsyncClient = context.request_context.lifespan_context
    return client


async def _asked(call: Callable[[], Awaitable[Any]]) -> Any:
    """Ask the server; its errors are the tool's, with the same message."""
    try:
        return await when_free(call)
    except ArenaError as problem:
        raise ToolError(str(problem)) from None


def _result(text: str, answer: object) -> CallToolResult:
    """Return text for the model, and the same facts as JSON."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=facts(answer))
