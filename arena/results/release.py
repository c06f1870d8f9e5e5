"""The tasks that a result belongs to: the release of the corpus, or the hash of tasks that are in none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from arena.results.bounds import Count

_DIGITS = 12


@dataclass(frozen=True)
class Corpus:
    """A set of tasks. `release` is the number of the release that holds each of them, unchanged; None: in none.

    `hash`: of that release, or else over ids and hashes of the tasks at hand.
    """

    release: Count | None
    hash: Annotated[str, Meta(pattern=r"^[0-9a-zA-Z]{1,64}\Z")]

    def __str__(self) -> str:
        """Return `release 3 (0123456789ab)` or `unreleased (0123456789ab)`."""
        name = "unreleased" if self.release is None else f"release {self.release}"
        return f"{name} ({self.hash[:_DIGITS]})"
