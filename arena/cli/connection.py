"""Options of the commands that are clients of `arena serve`."""

from __future__ import annotations

from typing import Annotated

import typer

Server = Annotated[
    str, typer.Option(envvar="ARENA_URL", help="Address of `arena serve`, or the path of its socket.", show_envvar=True)
]
Token = Annotated[
    str,
    typer.Option(envvar="ARENA_TOKEN", help="Its token; a socket needs none. Prefer the variable: `ps` shows options."),
]
Host = Annotated[str, typer.Option(help="Listen on this address. There is no password: 127.0.0.1 is for this machine.")]
LOOPBACK = "127.0.0.1"
