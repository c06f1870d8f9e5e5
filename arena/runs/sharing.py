"""Jobs shared out among workers, each of which does one at a time: trials among judges, tasks among judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import TypeVar

Job = TypeVar("Job")
Worker = TypeVar("Worker")
Outcome = TypeVar("Outcome")


def share_out(
    jobs: Sequence[Job],
    workers: Sequence[Worker],
    do: Callable[[Job, Worker], Outcome],
    cancel: Callable[[Worker], None],
) -> Iterator[Outcome]:
    """Outcomes as they come, in any order. `do` runs in a thread for each worker.

    Where a job raises, or whoever reads the outcomes stops, no further job begins, and `cancel` is called with every
    worker so that the jobs in hand end too; their outcomes are lost.
    """
    free: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def one(job: Job) -> Outcome:
        worker = free.get()
        try:
            return do(job, worker)
        finally:
            free.put(worker)

    pool = ThreadPoolExecutor(max_workers=max(1, len(workers)))
    try:
        for done in as_completed([pool.submit(one, job) for job in jobs]):
            yield done.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            cancel(worker)
        raise
    finally:
        pool.shutdown()
