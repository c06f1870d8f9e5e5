"""`arena serve`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from arena.cli.console import err, examples
from arena.cli.corpora import MaxWork, TasksDirs
from arena.cli.devices import Platform
from arena.printable import printable

if TYPE_CHECKING:
    from arena.service.episode import Episodes
    from arena.service.episode_server import EpisodeServer

EXAMPLES = examples(
    "arena serve rms_norm",
    "arena serve hip2hip/modules/softmax --platform cpu --evaluations 20 --minutes 15",
    "arena serve rms_norm --port 8080 --attempts 3    # POST /reset begins the next attempt",
    "arena serve rms_norm --socket /tmp/rms_norm.sock  # curl --unix-socket /tmp/rms_norm.sock http://arena/task",
)
_INTERRUPTED = 130


def serve(
    task: Annotated[str, typer.Argument(help="Task id, its bare name, or a task folder.")],
    socket: Annotated[Path | None, typer.Option(help="Listen on this Unix socket, for your own user only.")] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0: any free one.", min=0, max=65535)] = 0,
    platform: Platform = "auto",
    evaluations: Annotated[int, typer.Option(help="Evaluations in one attempt.", min=1)] = 50,
    minutes: Annotated[float, typer.Option(help="Minutes of one attempt, without measurements.", min=0.01)] = 30.0,
    attempts: Annotated[int, typer.Option(help="Attempts, one after the other.", min=1)] = 1,
    max_work: MaxWork = None,
    seeds: Annotated[int, typer.Option(help="Secret seeds per case in the correctness stage.", min=1)] = 3,
    timeout: Annotated[float, typer.Option(help="Seconds one call may take.", min=0.1)] = 60.0,
    tasks_dir: TasksDirs = None,
    targets: Annotated[
        list[str] | None, typer.Option(help="Cross-compile for these architectures (no such GPU required).")
    ] = None,
) -> None:
    """Serve one task over HTTP to a learning or tool-calling loop: GET /task, POST /evaluate, POST /finish.

    One line of JSON on stdout says where, and one each finished attempt what came of it. Ctrl-C ends it.
    """
    from arena.corpus.corpora import open_corpora
    from arena.judge.builder_client import BuilderClient
    from arena.judge.client import JudgeClient
    from arena.judge.messages import Options
    from arena.model.session import Limits
    from arena.service.episode import Episodes
    from arena.service.episode_server import EpisodeServer
    from arena.service.judge_pool import JudgePool
    from arena.toolchains.targets import parse

    found = open_corpora(tasks_dir or ()).find(task)
    options = Options(max_work=max_work, seeds=seeds, call_timeout_s=timeout, targets=parse(targets or ()))
    limits = Limits(wall_clock_s=minutes * 60, evaluations=evaluations)
    with ExitStack() as stack, _terminated_as_interrupted():
        judge, builder = stack.enter_context(JudgeClient(platform)), stack.enter_context(BuilderClient())
        with err.status("waiting for the judge"):
            episodes = Episodes(found, JudgePool([judge], builder), options, limits, attempts)
        stack.callback(episodes.close)
        server = EpisodeServer(episodes, port=port, path=socket)
        stack.callback(server.close)
        _serve(server, episodes)


def _serve(server: EpisodeServer, episodes: Episodes) -> None:
    """Until interrupted, which is an error only while an attempt is left unfinished."""
    view = episodes.describe()
    _print_line({"task": view.task, "address": server.address, "token": server.token})
    err.print(f"serving {view.task} at {server.address}; Ctrl-C ends it", highlight=False)
    try:
        server.serve()
    except KeyboardInterrupt:
        for final in episodes.finals:
            _print_line(final)
        left = view.attempts - len(episodes.finals)
        if left:
            err.print(f"interrupted: {left} of {view.attempts} attempts were not finished", highlight=False)
            raise typer.Exit(_INTERRUPTED) from None


def _print_line(value: object) -> None:
    typer.echo(printable(msgspec.json.encode(value).decode()))


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends the judge and the socket as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
