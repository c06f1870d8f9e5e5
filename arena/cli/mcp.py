"""`arena mcp`."""

from __future__ import annotations

from typing import Annotated

import typer

from arena.cli.connection import LOOPBACK, Host, Server, Token
from arena.cli.console import err, examples
from arena.extras import lacks_extra

EXAMPLES = examples(
    "arena serve rms_norm --socket /tmp/arena.sock     # in another terminal",
    "arena mcp --server /tmp/arena.sock                # over stdio, as a coding agent starts it",
    "claude mcp add arena -- arena mcp --server /tmp/arena.sock --agent claude",
    "arena mcp --server http://127.0.0.1:8700 --http --port 8800    # token in ARENA_TOKEN; clients: /mcp of port 8800",
)


def mcp(
    server: Server,
    token: Token = "",
    agent: Annotated[str, typer.Option(help="The agent of the trials.")] = "mcp",
    attempt: Annotated[int, typer.Option(help="Another number begins every task anew.", min=1)] = 1,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP in place of stdio.")] = False,
    host: Host = LOOPBACK,
    port: Annotated[int, typer.Option(help="Port for --http.", min=1, max=65535)] = 8800,
) -> None:
    """Offer the tasks of `arena serve` over the Model Context Protocol: list_tasks, get_task, evaluate, finish.

    One such server is one agent: clients that share it share its episodes. Needs the extra `mcp`, not PyTorch.
    """
    try:
        from arena.integrations.mcp_server import TaskTools, mcp_server
    except ImportError as problem:
        raise lacks_extra("mcp", problem) from None

    served = mcp_server(TaskTools(server, token, agent, attempt))
    if not http:
        served.run("stdio")
        return
    err.print(f"http://{host}:{port}/mcp; Ctrl-C ends it", highlight=False)
    served.run("streamable-http", host=host, port=port)
