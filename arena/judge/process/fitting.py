"""The last step on an evaluation before the judge sends it: printable text, and less than a frame in all.

What workers say is bounded where it is read (`answers.py`); this also holds what compilers say, and what the judge put
together of many such texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from arena.judge.workers.worker import DETAIL_CHARACTERS
from arena.processes.printable import shortened
from arena.processes.protocol import NAME_CHARACTERS
from arena.results.portability import KernelUse, TargetBuild
from arena.results.profile import Profile
from arena.results.record import CaseResult, Evaluation

LOG_CHARACTERS = 64_000
MOST_USES = 64
"""kernels of one target whose use of registers is told"""


def fit(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with every text printable and cut, and every list of kernels cut."""
    return replace(
        evaluation,
        verdicts=tuple(replace(verdict, detail=_detail(verdict.detail)) for verdict in evaluation.verdicts),
        cases=tuple(map(_case, evaluation.cases)),
        compile_log=shortened(evaluation.compile_log, LOG_CHARACTERS),
        targets=tuple(map(_target, evaluation.targets)),
        profile=None if evaluation.profile is None else _profile(evaluation.profile),
    )


def _detail(text: str) -> str:
    return shortened(text, DETAIL_CHARACTERS)


def _case(result: CaseResult) -> CaseResult:
    timing = result.timing
    if timing is not None:
        timing = replace(timing, doubted=_detail(timing.doubted), undecided=_detail(timing.undecided))
    return replace(result, detail=_detail(result.detail), timing=timing)


def _target(build: TargetBuild) -> TargetBuild:
    return replace(build, detail=_detail(build.detail), kernels=_uses(build.kernels))


def _profile(profile: Profile) -> Profile:
    times = (replace(time, kernel=shortened(time.kernel, NAME_CHARACTERS)) for time in profile.kernels)
    uses = {target: _uses(kernels) for target, kernels in profile.uses.items()}
    table = profile.counters
    counters = None if table is None else replace(table, detail=_detail(table.detail))
    return replace(profile, kernels=tuple(times), detail=_detail(profile.detail), uses=uses, counters=counters)


def _uses(kernels: Sequence[KernelUse]) -> tuple[KernelUse, ...]:
    return tuple(replace(use, kernel=shortened(use.kernel, NAME_CHARACTERS)) for use in kernels[:MOST_USES])
