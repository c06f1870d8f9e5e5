"""Episodes on a small task with a judge that reads a kernel's last word, for tests that need no device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from arena.results.effort import Effort
from arena.results.record import Evaluation
from arena.results.session import Limits
from arena.runs.serve.clients import Caller, ClientAccount
from arena.runs.serve.episodes import Episodes, ServeSettings, opened
from arena.runs.service.judge_pool import JudgePool
from arena.task.corpus.corpora import open_corpora
from arena.task.options import Options
from tests.fakes import Timing
from tests.task.corpus.folders import TASK as DEFINITION
from tests.task.corpus.folders import write_task

TASK = "triton2triton/suite/scale"


def me(episodes: Episodes) -> Caller:
    """The first client, which is the only one where none is given."""
    return Caller(episodes.clients.known[0])


class Judge(Timing):
    """As fast as the last word says; names the effort that it was asked for, and may be held up."""

    def __init__(self, held_up: Callable[[], None] | None = None) -> None:
        super().__init__(speeds={"slow": 0.5, "same": 1.0, "fast": 2.0, "...": 1.0})
        self._held_up = held_up

    def begin(self) -> None:
        if self._held_up is not None:
            self._held_up()

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        effort = self.options[-1].effort
        timed = replace(found, effort=effort)
        return timed if effort is Effort.CORRECTNESS else super().finish(timed, text)


@contextmanager
def served(
    root: Path,
    judge: Judge | None = None,
    *,
    evaluations: int = 10,
    minutes: float = 10.0,
    effort: Effort = Effort.FULL,
    capacity: int = 8,
    clients: Sequence[ClientAccount] = (),
    tasks: Sequence[str] = (),
    private_heldout: bool = False,
) -> Iterator[tuple[Episodes, Judge]]:
    """Open the run folder `root/run`, which goes on where an earlier one stopped."""
    if not (root / "tasks").is_dir():
        write_task(root / "tasks", TASK)
        write_task(root / "tasks", TASK + "_too", task=DEFINITION.replace("scale", "scale_too"))
    judge = judge or Judge()
    corpora = open_corpora([root / "tasks"])
    limits = Limits(wall_clock_s=minutes * 60, evaluations=evaluations)
    options, chosen = Options(effort=effort), tuple(tasks) or corpora.ids
    folder, known = root / "run", tuple(clients)
    settings = ServeSettings(folder, corpora, chosen, options, limits, capacity, known, private_heldout=private_heldout)
    pool = JudgePool([judge])
    try:
        with opened(settings, pool) as episodes:
            yield episodes, judge
    finally:
        pool.cancel()
