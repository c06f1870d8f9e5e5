"""Figures of published kernels that were judged, as README has them. Used by `tools/claims.py`."""

from __future__ import annotations

import csv

from figures import kept

SURVIVAL = "reports/published-kernels/survival.csv"
_NOT_JUDGED = "not judged"
_RIGHT_ON_SEEN = ("solved", "overfit")


def survival() -> str:
    """Return how many published kernels are right on seen cases, and how many of these on unseen ones too."""
    with (kept.ROOT / SURVIVAL).open(encoding="utf-8", newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["outcome"] != _NOT_JUDGED]
    right = [row for row in rows if row["outcome"] in _RIGHT_ON_SEEN]
    kept_up = [row for row in right if row["outcome"] == "solved"]
    silent = [row for row in right if row["failure"] == "silently wrong"]
    return (
        f"{len({row['agent'] for row in rows})} agent configurations published {len(rows)} Triton kernels for "
        f"KernelBench-Hard's H100 deck that the CPU platform can judge. {len(right)} are right on our small seen "
        f"cases. {len(kept_up)} of these are right on unseen ones too, and {len(silent)} are wrong there without "
        "an error."
    )
