"""`arena openreward`."""

from __future__ import annotations

from typing import Annotated

import typer

from arena.cli.connection import LOOPBACK, Host, Server, Token
from arena.cli.console import err, examples
from arena.extras import lacks_extra

EXAMPLES = examples(
    "arena serve --split train --socket /tmp/arena.sock      # in another terminal",
    "arena openreward --server /tmp/arena.sock               # at http://127.0.0.1:8080",
    "arena openreward --server http://127.0.0.1:8700 --agent policy-7 --reward bounded    # token in ARENA_TOKEN",
)
_SCHEME = "The reward of run_kernel: `dense` or `bounded`; docs/evaluate/serve.md has the formulas."


def openreward(
    server: Server,
    token: Token = "",
    agent: Annotated[str, typer.Option(help="The agent of the trials: a policy or a checkpoint.")] = "openreward",
    reward: Annotated[str, typer.Option(help=_SCHEME)] = "dense",
    host: Host = LOOPBACK,
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8080,
) -> None:
    """Offer the tasks of `arena serve` as an OpenReward (ORS) environment with the tools run_kernel and finish.

    Splits are the task types and suites that the server has. Needs the extra `openreward`, not PyTorch.
    """
    from arena.errors import UsageError
    from arena.integrations.asking import RewardScheme

    if reward not in list(RewardScheme):
        raise UsageError(f"--reward {reward}: expected one of {', '.join(RewardScheme)}")
    try:
        from arena.integrations.openreward_server import NAME, openreward_server
    except ImportError as problem:
        raise lacks_extra("openreward", problem) from None

    import uvicorn

    app = openreward_server(server, token, agent, RewardScheme(reward)).app
    err.print(f"environment {NAME} at http://{host}:{port}; Ctrl-C ends it", highlight=False)
    uvicorn.run(app, host=host, port=port, access_log=False, log_level="warning")
