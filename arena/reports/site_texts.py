"""The words of the leaderboard's fixed pages."""

from __future__ import annotations

from arena.reports.results import NOTE
from arena.reports.standings import LEVEL_NOTE

Part = tuple[str, tuple[str, ...]]

INDEX = (
    f"{NOTE} {LEVEL_NOTE}",
    "Agents without a rank hand in files of the corpus, to calibrate.",
    "Each board has one kind of device and one release of the corpus. Intervals are 95 %.",
    "Lost on unseen shapes: the share of trials, right on seen cases, that are wrong on a held-out case. Lost, private "
    "draw: the same on held-out cases that nobody knew before the kernel was handed in.",
)
BEST = (
    "A trial counts where its kernel is correct on every seen and every held-out case and every check of its timing "
    "held. The speedup is relative to the task's baseline on the same device."
)
METHOD: tuple[Part, ...] = (
    (
        "From a kernel to a number",
        (
            "An agent gets a task: an operator, its baseline kernel and the seen cases. It hands in one kernel.",
            "The judge compiles the kernel in a sandbox and compares its outputs with a float64 reference, on secret "
            "inputs. It then times kernel and baseline in turns on the same data.",
            "The speedup of a case is baseline latency over candidate latency. The speedup of a trial is the geometric "
            "mean over its timed seen cases. The gain of an agent is the geometric mean of the speedups of its planned "
            "trials, where one that is not solved, or not shown to be faster than the baseline, counts as 1.",
            "Held-out cases are sizes that the agent never saw. They decide whether a trial is solved.",
        ),
    ),
    (
        "Verification levels",
        (
            "Records only: the numbers are those of the submitted records, checked for form alone.",
            "Re-judged by us: kernels were judged again with `arena verify`. The board says how many trials, and how "
            "many of their figures are reproduced. The others are not, or are undecided where the board says so.",
            "Transcript audited: somebody, whom the agent's page names, read the transcripts of the sessions.",
        ),
    ),
    (
        "When a figure is reproduced",
        (
            "A status or a count of cases is reproduced where both are equal.",
            "A speedup is reproduced where both 95 % intervals, widened by the documented timing error of the clock, "
            "overlap. It is undecided where they overlap and a timing is noisy.",
            "Figures of tasks that changed since the record are compared, but do not count.",
        ),
    ),
    (
        "Releases",
        (
            "A release of the corpus has a number and a hash over every task. A board never mixes two releases. "
            "A run on tasks that are in no release is on a board of its own.",
        ),
    ),
    ("More", ("docs/evaluate/measures.md defines every measure; docs/develop/measurement.md has the timing errors.",)),
)
SUBMIT: tuple[Part, ...] = (
    (
        "How to submit",
        (
            "1. Run your agent: `arena run my_run.yaml`. Do not change the run folder afterwards.",
            "2. Add the run folder below `submissions/` in a pull request: run.json, trials, submissions and, for the "
            "third level, transcripts.",
            "3. We judge its kernels again with `arena verify`, also on a private draw of held-out cases, and rebuild "
            "this site.",
        ),
    ),
    (
        "What is refused",
        (
            "Folders with links, files that are too large, names that are no names, and records that do not belong to "
            "the run. `arena site RUN --out DIR` says what is wrong before you hand it in.",
        ),
    ),
)
