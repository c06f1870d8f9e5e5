"""Releases of the corpus: a number, and the hash of every task in it. Results of two releases are never compared.

`tasks/RELEASE.json` names the tasks of the last release. While `development` is true the tasks may differ from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from arena.errors import FileError
from arena.results.release import Corpus
from arena.task.corpus.task_folder import TASKS
from arena.task.definition import Task

FILE = "RELEASE.json"


class CorpusRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release: its number, and the content hash of each task by id."""

    number: int
    development: bool
    tasks: dict[str, str]

    @property
    def hash(self) -> str:
        """SHA-256 over ids and content hashes of the tasks."""
        return tasks_hash(self.tasks)

    def differences(self, hashes: Mapping[str, str]) -> tuple[str, ...]:
        """Return the ids of tasks that were added, removed or changed since this release."""
        return tuple(sorted(name for name in {*hashes, *self.tasks} if hashes.get(name) != self.tasks.get(name)))


def tasks_hash(hashes: Mapping[str, str]) -> str:
    """Return the SHA-256 over ids and content hashes of some tasks, in the order of their ids."""
    lines = "".join(f"{name} {hashes[name]}\n" for name in sorted(hashes))
    return hashlib.sha256(lines.encode()).hexdigest()


def corpus_of(tasks: Mapping[str, Task]) -> Corpus:
    """Return the release that holds these tasks as they are, or the hash of tasks that are in no release.

    A task elsewhere than in the shipped corpus, or with other held-out cases, is in no release.
    """
    hashes = {name: task.content_hash for name, task in tasks.items()}
    release = last_release()
    shipped = all(task.path.is_relative_to(TASKS) for task in tasks.values())
    if release is not None and shipped and all(release.tasks.get(name) == hashes[name] for name in hashes):
        return Corpus(release.number, release.hash)
    return Corpus(None, tasks_hash(hashes))


@cache
def last_release() -> CorpusRelease | None:
    """Return the last release of the shipped corpus; None before the first."""
    return read_release(TASKS / FILE)


def read_release(path: Path) -> CorpusRelease | None:
    """Read a release file; None where there is none, or where it names no task. Raises `FileError`."""
    if not path.is_file():
        return None
    try:
        release = msgspec.json.decode(path.read_bytes(), type=CorpusRelease)
    except msgspec.DecodeError as problem:
        raise FileError(path, f"no release ({problem}); `arena tasks release` writes one") from None
    return release if release.tasks else None


def write_release(path: Path, release: CorpusRelease) -> None:
    """Write a release file."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(release), indent=1) + b"\n")
