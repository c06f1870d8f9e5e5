"""Give requests to judges: owners in turn, and of each the oldest first, but rather to a judge that knows its baseline.

A judge measures a baseline once. Where that is done, an evaluation takes it a quarter less time. Whether it is done is
guessed from what the judge was asked before, and decides no verdict.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

_TURNS_EACH = 2
"""after so many turns for each judge, a request goes to whoever is next, even if another one knows its baseline"""

J = TypeVar("J")


@dataclass(frozen=True)
class Owner:
    """The client of a request. `is_gone`: whether nobody waits for the answer any more."""

    name: str = ""
    is_gone: Callable[[], bool] = lambda: False


class QueuedRequest(Generic[J]):
    """A request's place in the queue. `baseline`: what its judge should know afterwards; None: nothing."""

    def __init__(self, baseline: Hashable | None = None, owner: str = "") -> None:
        self.baseline, self.owner = baseline, owner
        self.called = threading.Event()
        self.judge: J | None = None
        self.passed_over = 0


class JudgeQueue(Generic[J]):
    """Judges that are free, or else requests that wait. Its owner locks; judges are told apart by identity.

    `queued`: how many requests a judge is given at once.
    """

    def __init__(self, judges: Sequence[J], queued: int) -> None:
        self._queued = queued
        self._free = deque(list(judges) * queued)
        self._waiting: deque[QueuedRequest[J]] = deque()
        self._known: dict[int, set[Hashable]] = {id(one): set() for one in judges}
        self._turns = count(1)
        self._last_turn: dict[str, int] = {}
        """of each owner"""

    def take(self, request: QueuedRequest[J], told: J | None) -> None:
        """Give a free judge to a request, best the one that was told of it; where none is free, it waits."""
        if not self._free:
            self._waiting.append(request)
        elif told is not None and any(one is told for one in self._free):
            request.judge = self._taken(told)
        else:
            request.judge = self.take_idle(request.baseline)

    def take_idle(self, baseline: Hashable | None, told: Sequence[J] = ()) -> J | None:
        """Take a free judge that was told of nothing; None where there is none.

        Of those that have the fewest requests, it is best one that knows the baseline: none idles for the others' sake.
        """
        idle = [one for one in self._free if not any(one is other for other in told)]
        if not idle:
            return None
        places = Counter(map(id, idle))
        least_loaded = [one for one in idle if places[id(one)] == max(places.values())]
        return self._taken(next((one for one in least_loaded if self._knows(one, baseline)), least_loaded[0]))

    def give_back(self, judge: J, baseline: Hashable | None = None) -> None:
        """Give a judge, which was asked about this baseline, to whoever is next."""
        known = self._known.get(id(judge))
        if known is None:  # it is lost
            return
        if baseline is not None:
            known.add(baseline)
        if not self._waiting:
            self._free.append(judge)
            return
        request = self._next(judge)
        request.judge = judge
        request.called.set()

    def add(self, judge: J) -> None:
        """Let requests have a further judge."""
        self._known[id(judge)] = set()
        for _ in range(self._queued):
            self.give_back(judge)

    def lose(self, judge: J) -> bool:
        """Give a judge nothing any more; False where that was so already, since several requests may find it lost."""
        self._free = deque(one for one in self._free if one is not judge)
        return self._known.pop(id(judge), None) is not None

    def leave(self, request: QueuedRequest[J]) -> None:
        """Take a request that waits out of the queue."""
        self._waiting.remove(request)

    def __len__(self) -> int:
        """Return how many requests wait."""
        return len(self._waiting)

    def end(self) -> None:
        """Whoever waits is called without a judge."""
        while self._waiting:
            self._waiting.popleft().called.set()

    def _taken(self, judge: J) -> J:
        place = next(place for place, one in enumerate(self._free) if one is judge)
        del self._free[place]
        return judge

    def _next(self, judge: J) -> QueuedRequest[J]:
        """The oldest request that need not wait for another judge; where all do, the oldest of all.

        All are those of the owner whose last turn is the longest ago.
        """
        owner = min((one.owner for one in self._waiting), key=lambda name: self._last_turn.get(name, 0))
        of_owner = [one for one in self._waiting if one.owner == owner]
        request = next((one for one in of_owner if not self._may_wait(judge, one)), of_owner[0])
        for earlier in of_owner[: of_owner.index(request)]:
            earlier.passed_over += 1
        self._waiting.remove(request)
        self._last_turn[owner] = next(self._turns)
        return request

    def _may_wait(self, judge: J, request: QueuedRequest[J]) -> bool:
        """Return whether another judge knows its baseline, and it has not been passed over too often."""
        if self._knows(judge, request.baseline) or request.passed_over >= _TURNS_EACH * len(self._known):
            return False
        return any(request.baseline in baselines for baselines in self._known.values())

    def _knows(self, judge: J, baseline: Hashable | None) -> bool:
        return baseline in self._known[id(judge)]
