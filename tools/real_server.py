"""`arena serve` in this process, for tools that ask the real judge as any client does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from arena import Client
from arena.processes.http_server import EvaluationServer
from arena.results.session import Limits
from arena.runs.serve.episodes import ServeSettings, opened
from arena.runs.serve.routes import Routes
from arena.runs.service.judge_pool import started
from arena.task.corpus.corpora import open_corpora
from arena.task.options import Options


@contextmanager
def real_server(run: Path, tasks: Sequence[str], options: Options, platform: str) -> Iterator[Client]:
    """Serve shipped tasks with one judge; records go to the folder `run`."""
    settings = ServeSettings(run, open_corpora(), tuple(tasks), options, Limits(), capacity=1)
    with (
        started(platform, builds=True) as pool,
        opened(settings, pool) as episodes,
        EvaluationServer(Routes(episodes).table()) as server,
        Client(server.address, server.token) as client,
    ):
        yield client
