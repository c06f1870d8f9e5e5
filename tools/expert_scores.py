"""Write what timed cases alone change in the scores of experts, from the kept run on H200s.

    python tools/expert_scores.py > reports/tables/expert-scores.md

Before, a trial's speedup was the geometric mean over all seen cases; now over those that say `timed: true`.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean

from arena.corpus.corpora import open_corpora

CASES = Path(__file__).resolve().parents[1] / "reports" / "full-h200" / "cases.csv"
TITLE = "# Scores of experts, over all seen cases and over timed ones"


def main() -> None:
    """Print the table as Markdown."""
    speedups: dict[str, dict[str, float]] = defaultdict(dict)
    with CASES.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["agent"] == "expert" and row["split"] == "seen" and row["speedup"]:
                low, value = float(row["speedup_low"]), float(row["speedup"])
                speedups[row["task"]][row["case"]] = min(1.0, low) if row["noisy"] == "True" else value
    corpora = open_corpora(())
    rows: list[tuple[str, float, float, int, int]] = []
    short: list[tuple[str, float, float, int, int]] = []
    for name, by_case in sorted(speedups.items()):
        task = corpora.load(name)
        timed = [by_case[case.id] for case in task.seen if case.timed and case.id in by_case]
        line = (name, geometric_mean(by_case.values()), geometric_mean(timed), len(by_case), len(timed))
        (short if task.latency_bound else rows).append(line)
    print(f"{TITLE}\n\nMade by `tools/expert_scores.py` from `reports/full-h200`, on H200s.")
    print("Noisy cases count as min(1, lower bound).\n")
    for title, lines in (("Tasks", rows), ("Tasks bound by latency", short)):
        if not lines:
            continue
        before, now = geometric_mean(line[1] for line in lines), geometric_mean(line[2] for line in lines)
        print(f"## {title}\n\nGeometric mean of {len(lines)} experts: {before:.2f} over all seen cases,")
        print(f"{now:.2f} over timed ones.\n")
        print("| task | all seen cases | timed cases | cases | timed |\n| --- | --- | --- | --- | --- |")
        for name, all_cases, timed_cases, count, chosen in lines:
            print(f"| {name} | {all_cases:.2f} | {timed_cases:.2f} | {count} | {chosen} |")


if __name__ == "__main__":
    main()
