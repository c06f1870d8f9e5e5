"""Jobs shared out among workers: each worker has one at a time, and giving up ends what is in hand."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from arena.runs.sharing import share_out


def test_every_job_is_done_once_and_no_worker_has_two_at_a_time() -> None:
    busy = {name: threading.Lock() for name in "ab"}
    both = threading.Barrier(2, timeout=60)

    def do(job: int, worker: str) -> int:
        assert busy[worker].acquire(blocking=False)
        if job < 2:
            both.wait()  # passes only where two jobs run at once
        busy[worker].release()
        return job * job

    outcomes = list(share_out(range(20), tuple("ab"), do, lambda worker: None))
    assert Counter(outcomes) == Counter(job * job for job in range(20))


def test_a_failure_stops_the_rest_and_frees_whoever_waits() -> None:
    given_up = {"a": threading.Event(), "b": threading.Event()}
    done = []

    def do(job: int, worker: str) -> int:
        if job == 0:
            raise KeyboardInterrupt
        assert given_up[worker].wait(10)
        done.append(job)
        return job

    with pytest.raises(KeyboardInterrupt):
        list(share_out(range(50), tuple(given_up), do, lambda worker: given_up[worker].set()))
    assert len(done) <= 2


def test_nothing_to_do_is_done_at_once() -> None:
    assert list(share_out((), ("a",), lambda job, worker: job, lambda worker: None)) == []
