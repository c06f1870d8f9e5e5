"""Published kernels that were judged on a GPU, from the kept run. Used by `tools/claims.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from arena.integrations.published import survival
from arena.integrations.published.sources import PublishedKernel
from arena.results.failures import FailureClass
from arena.runs.records import RunRecords
from figures import kept

RECORDS = "reports/published-kernels/records.tar.xz"
ROWS = "reports/published-kernels/h200.csv"


@cache
def judged() -> tuple[RunRecords, Sequence[PublishedKernel]]:
    """Return the kept run of `arena regrade`, and the kernels that it is of."""
    run = kept.run(RECORDS)
    kernels = msgspec.json.decode((run.path / survival.KERNELS).read_bytes(), type=tuple[PublishedKernel, ...])
    return run, kernels


def page() -> str:
    """Return the counts."""
    return survival.page(*judged(), survival.survival(*judged()))


def table() -> bytes:
    """Return the rows as CSV."""
    run, kernels = judged()
    survival.write(run, kernels, run.path)
    return (run.path / survival.ROWS).read_bytes()


def sentence() -> str:
    """Return how many published kernels are right on published cases, and how many of these on all others too."""
    found = survival.progress_of(survival.survival(*judged()))
    able = [one for one in judged()[1] if not one.lack]
    silent = [row for row in found.met if row.failure == FailureClass.SILENT]
    return (
        f"{len(able)} published kernels of KernelBench-Hard's H100 deck have a task here. {len(found.judged)} "
        f"were judged on an H200 so far, and {len(found.tried)} of them break no rule on published sizes. "
        f"{len(found.right)} are right on every published size. {len(found.met)} of these met other sizes and "
        f"values: {len(found.kept)} right on all, "
        f"{len(silent)} wrong without an error."
    )
