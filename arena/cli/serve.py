"""`arena serve`."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from arena.cli.console import err, examples
from arena.cli.corpora import TasksDirs
from arena.cli.devices import ACCELERATOR, ADDRESS, ALLOW_MIXED, DEVICES, EXECUTOR, Platform, chosen_devices
from arena.cli.options import chosen_options, takes_options
from arena.errors import UsageError
from arena.processes.printable import printable
from arena.task.corpus.split import TaskSplit
from arena.task.options import SERVE

if TYPE_CHECKING:
    from arena.runs.serve.episodes import Episodes, ServeSettings
    from arena.runs.serve.routes import EpisodeServer
    from arena.runs.service.judge_pool import JudgePool

EXAMPLES = examples(
    "arena serve                                       # every task, on any free port of 127.0.0.1",
    "arena serve rms_norm hip2hip/modules/softmax --platform cpu --evaluations 20 --minutes 15",
    "arena serve --split train --effort screen --devices all --name policy-7    # again: goes on with its episodes",
    "arena serve --clients clients.yaml                # several clients: a token, limits and episodes for each",
    "arena serve --socket /tmp/arena.sock              # curl --unix-socket /tmp/arena.sock http://arena/status",
)
_INTERRUPTED = 130
_TOKEN, _AGENT_TOKEN = "ARENA_TOKEN", "ARENA_AGENT_TOKEN"


@takes_options(SERVE)
def serve(
    tasks: Annotated[list[str] | None, typer.Argument(help="Ids, bare names or globs; `!pattern` leaves out.")] = None,
    split: Annotated[TaskSplit, typer.Option(help="Serve the tasks of this split alone.")] = TaskSplit.ALL,
    socket: Annotated[Path | None, typer.Option(help="Listen on this Unix socket, for your own user only.")] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0: any free one.", min=0, max=65535)] = 0,
    platform: Platform = "auto",
    devices: Annotated[str, DEVICES] = "",
    executor: Annotated[str, EXECUTOR] = "local",
    address: Annotated[str, ADDRESS] = "",
    accelerator: Annotated[str, ACCELERATOR] = "",
    name: Annotated[str, typer.Option(help="Name of the run folder that holds the episodes.")] = "served",
    runs_dir: Annotated[Path, typer.Option(help="Folder of the run folders.")] = Path("runs"),
    evaluations: Annotated[int, typer.Option(help="Evaluations in one episode.", min=1)] = 50,
    minutes: Annotated[float, typer.Option(help="Minutes of one episode, without evaluations.", min=0.01)] = 30.0,
    capacity: Annotated[int, typer.Option(help="Evaluations that are judged or wait; more are refused.", min=1)] = 256,
    clients: Annotated[
        Path | None, typer.Option(help="File of clients, each with tokens and limits of its own; else there is one.")
    ] = None,
    agent_episodes: Annotated[
        int, typer.Option(help="Episodes that may be begun by the agents' token, of the one client.", min=0)
    ] = 0,
    private_heldout: Annotated[
        bool,
        typer.Option(
            "--private-heldout", help="Draw held-out cases for each episode alone, in place of those of the task."
        ),
    ] = False,
    tasks_dir: TasksDirs = None,
    allow_mixed: Annotated[bool, ALLOW_MIXED] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Serve tasks over HTTP to training and tool-calling loops: many episodes at once, each with a record.

    One line of JSON on stdout says where. Ctrl-C ends it, and the same command goes on with unfinished episodes.
    ARENA_TOKEN and ARENA_AGENT_TOKEN set the tokens, which are random otherwise. The second one gives no verdicts,
    and begins as many episodes as --agent-episodes says.
    """
    from arena.results.session import Limits
    from arena.runs.executors import executor as executor_called
    from arena.runs.executors.base import JudgesWanted
    from arena.runs.serve.clients import local, read_clients
    from arena.runs.serve.episodes import ServeSettings, served
    from arena.runs.serve.routes import EpisodeServer
    from arena.task.corpus.corpora import open_corpora

    corpora, patterns = open_corpora(tasks_dir or ()).including(tasks or ())
    options = chosen_options({"heldout": True, **given}, "")
    limits = Limits(wall_clock_s=minutes * 60, evaluations=evaluations)
    chosen = served(corpora, patterns, split)
    token, agent_token = (os.environ.pop(name, "") for name in (_TOKEN, _AGENT_TOKEN))  # kept from judges
    if clients is not None and (token or agent_token or socket or agent_episodes):
        raise UsageError(
            f"--clients has the tokens and limits: leave out {_TOKEN}, {_AGENT_TOKEN}, --socket and --agent-episodes"
        )
    known = read_clients(clients) if clients else (local(capacity, token, agent_token, agent_episodes),)
    settings = ServeSettings(
        runs_dir / name, corpora, chosen, options, limits, capacity, known, allow_mixed, private_heldout
    )
    folders = {task: corpora.folders[task] for task in chosen}
    wanted = JudgesWanted(platform, chosen_devices(devices), True, tuple(tasks_dir or ()), folders)
    judges = executor_called(executor, address, accelerator).judges(wanted)
    _serve(settings, judges, partial(EpisodeServer, port=port, path=socket))


def _serve(
    settings: ServeSettings, judges: AbstractContextManager[JudgePool], listen: Callable[[Episodes], EpisodeServer]
) -> None:
    """Start judges, go on with what the run folder holds, and listen."""
    from arena.runs.serve.episodes import opened

    with _terminated_as_interrupted(), ExitStack() as stack:
        pool = stack.enter_context(judges)
        with err.status("waiting for the judge"):
            _ = pool.environments
        episodes = stack.enter_context(opened(settings, pool))
        server = stack.enter_context(listen(episodes))
        stack.callback(pool.cancel)
        _wait(server, episodes, settings.folder)


def _wait(server: EpisodeServer, episodes: Episodes, folder: Path) -> None:
    """Serve until interrupted, which is an error only while an episode is unfinished."""
    from arena.runs.serve.clients import LOCAL

    view = episodes.overview()
    is_local = episodes.clients.known[0].name == LOCAL  # the tokens of a file are known to whoever wrote it
    tokens = {"token": server.token, "agent_token": server.agent_token} if is_local else {}
    line = {"address": server.address, **tokens, "run": str(folder), "tasks": view.tasks}
    typer.echo(printable(msgspec.json.encode(line).decode()))
    resumed = f", {view.open} unfinished episodes" if view.open else ""
    err.print(f"serving {view.tasks} tasks at {server.address}{resumed}; Ctrl-C ends it", highlight=False)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        view = episodes.overview()
        err.print(f"{folder}: {view.finished} episodes finished, {view.open} unfinished", highlight=False)
        if view.finished:
            err.print(f"next: arena report {folder}", highlight=False)
        if view.open:
            raise typer.Exit(_INTERRUPTED) from None


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
