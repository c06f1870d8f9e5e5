"""Published kernels that were judged on a GPU, from the kept run. Used by `tools/claims.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from arena.integrations.published import survival
from arena.integrations.published.sources import PublishedKernel
from arena.results.failures import FailureClass
from arena.runs.records import RunRecords, read_run
from figures import kept

RECORDS = "reports/published-kernels/records.tar.xz"
ROWS = "reports/published-kernels/h200.csv"


@cache
def judged() -> tuple[RunRecords, Sequence[PublishedKernel]]:
    """Return the kept run of `arena regrade`, and the kernels that it is of."""
    (folder,) = kept.unpacked(RECORDS).iterdir()
    kernels = msgspec.json.decode((folder / survival.KERNELS).read_bytes(), type=tuple[PublishedKernel, ...])
    return read_run(folder), kernels


def page() -> str:
    """Return the counts."""
    return survival.page(*judged(), survival.survival(*judged()))


def table() -> bytes:
    """Return the rows as CSV."""
    folder = kept.unpacked(RECORDS)
    survival.write(*judged(), next(folder.iterdir()))
    return (next(folder.iterdir()) / survival.ROWS).read_bytes()


def sentence() -> str:
    """Return how many published kernels are right on published cases, and how many of these on all others too."""
    rows = survival.survival(*judged())
    able = [one for one in judged()[1] if not one.lack]
    tried = [row for row in rows if row.published_judged]
    right = [row for row in tried if row.published_right == row.published_judged]
    met = [row for row in right if survival.met_others(row)]
    silent = [row for row in met if row.failure == FailureClass.SILENT]
    return (
        f"{len(able)} published Triton kernels of KernelBench-Hard's H100 deck have a task here. "
        f"{len(tried)} of them have run on an H200 so far. {len(right)} are right on every published size. "
        f"{len(met)} of these met other sizes and values. Right on all: {sum(map(survival.survives, met))}. "
        f"Wrong without an error: {len(silent)}."
    )
