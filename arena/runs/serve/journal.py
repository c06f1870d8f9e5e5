"""Episodes on disk, in a run folder: `episodes/<id>/state.json`, and files beside it.

Every evaluated kernel is a file, and so are private held-out cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from arena.errors import RecordError
from arena.results.effort import Effort
from arena.results.session import Evaluated
from arena.runs import records
from arena.runs.serve.clients import LOCAL
from arena.task.corpus.task_folder import HELDOUT

FOLDER = "episodes"
_STATE = "state.json"


class EpisodeState(msgspec.Struct, forbid_unknown_fields=True):
    """An episode between two calls. `active_s`: what its clock showed after the last one."""

    episode: str
    task: str
    task_hash: str
    agent: str
    attempt: int
    seed: int | None
    effort: Effort
    started_at: str
    active_s: float = 0.0
    evaluations: list[Evaluated] = []
    client: str = LOCAL
    by_agent: bool = False
    """whether the holder of an `agent_token` began it"""
    draw_seed: int | None = None
    """of its private held-out cases, which no client is told; None: the task's own cases"""
    schema_version: int = 1

    @property
    def key(self) -> tuple[str, str, int]:
        """What its trial is called."""
        return self.agent, self.task, self.attempt


@dataclass(frozen=True)
class EpisodeJournal:
    """The episodes of one run folder."""

    run: Path

    def write(self, state: EpisodeState) -> None:
        """Write a state, atomically. Raises `StorageError`."""
        records.write(self._folder(state.episode) / _STATE, state)

    def write_kernel(self, episode: str, number: int, kernel: bytes) -> None:
        """Keep an evaluated kernel. Raises `StorageError`."""
        records.write_bytes(self._kernel(episode, number), kernel)

    def kernel(self, episode: str, number: int) -> bytes:
        """Return an evaluated kernel. Raises `RecordError`."""
        try:
            return self._kernel(episode, number).read_bytes()
        except OSError as problem:
            raise RecordError(f"{self._kernel(episode, number)}: {problem.strerror}") from None

    def heldout(self, episode: str) -> Path:
        """Return where the private held-out cases of an episode lie."""
        return self._folder(episode) / HELDOUT

    def kernel_bytes(self, state: EpisodeState) -> int:
        """Return how many bytes the kept kernels of an episode have. Raises `RecordError`."""
        return sum(len(self.kernel(state.episode, one.number)) for one in state.evaluations)

    def states(self) -> Iterator[EpisodeState]:
        """Read every state, oldest first. Raises `RecordError` where one is no such record."""
        found = [records.read(path, EpisodeState) for path in (self.run / FOLDER).glob(f"*/{_STATE}")]
        yield from sorted(found, key=lambda state: (state.started_at, state.attempt))

    def is_recorded(self, state: EpisodeState) -> bool:
        """Return whether the episode has a trial record: it is finished."""
        return records.trial_path(self.run, *state.key).is_file()

    def _folder(self, episode: str) -> Path:
        return self.run / FOLDER / episode

    def _kernel(self, episode: str, number: int) -> Path:
        return self._folder(episode) / f"{number}.kernel"
