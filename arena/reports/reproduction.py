"""Compare the records of a run with those of the same kernels judged again: which figures are reproduced.

A record is what its author claims. Its speedups are computed again from its rounds, and a case that was not judged here
is not reproduced. The rule is in docs/evaluate/reading-a-report.md: words must be equal, intervals must overlap once
the timing error of the clock is added to both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from arena.reports.rows import combine, served_speedup
from arena.results.effort import Effort
from arena.results.environment import Environment
from arena.results.outcome import HeldoutOutcome, Outcome, calibrates, heldout_outcome, heldout_ran, outcome_of
from arena.results.record import CaseResult, CaseTiming, Estimate, Evaluation, RunInfo, Split, Trial, counted
from arena.results.verdict import CORRECT, Stage, Status
from arena.results.verification import (
    Figure,
    FigureKind,
    JudgedHere,
    PrivateDraw,
    Reproduction,
    TrialVerification,
    Verification,
)
from arena.runs.recompute import contradiction, recomputed
from arena.runs.records import RunRecords
from arena.runs.rejudge import Rejudging, verifiable
from arena.runs.runner import now
from arena.task.corpus.release import last_release
from arena.task.definition import Task

CLOCK_ERROR = 0.007
"""a relative error that the clock may have; docs/develop/measurement.md has those of kernels of known duration"""
_OTHER_DEVICE = "measured on another device"
_NO_VERDICT = "the harness failed here"
_SPEED_NAMES = {Split.SEEN: "speedup", Split.HELDOUT: "held-out speedup"}
Pair = tuple[CaseResult, CaseResult]


def clock_error(environment: Environment) -> float | None:
    """Return the documented timing error of a device, relative; None for an emulation, which has no known one."""
    return None if environment.device.emulated else CLOCK_ERROR


def compare_trial(
    recorded: Trial, repeated: Trial, *, task_changed: bool, own_cases: Collection[str]
) -> TrialVerification:
    """Compare the record of a trial with that of the same kernel judged again.

    Args:
        recorded: what the run folder says.
        repeated: what was found here, on the task's own held-out cases and then on the private ones.
        task_changed: whether the task differs from the one that was recorded.
        own_cases: ids of the task's own cases; further held-out ones are private.
    """
    first, second = recorded.evaluation, repeated.evaluation
    assert first is not None  # nothing else is chosen to be judged again
    own, private = (None, None) if second is None else _parted(second, own_cases)
    if repeated.status is Status.HARNESS_ERROR:
        figures: tuple[Figure, ...] = (
            Figure(FigureKind.STATUS, "status", recorded.status, repeated.status, Reproduction.UNDECIDED, _NO_VERDICT),
        )
    else:
        same_device = recorded.environment.comparable_with(repeated.environment)
        figures = (
            *_words(recorded, repeated, own),
            *_outcomes(recorded, own, same_device),
            *_alone(first, own, own_cases, same_device),
            *_numbers(first, own, repeated.environment, same_device, task_changed),
            *(() if task_changed else _left_out(first, own, repeated.environment, same_device)),
        )
    return TrialVerification(
        recorded.agent,
        recorded.task,
        recorded.task_type,
        recorded.attempt,
        task_changed,
        figures,
        None if private is None or second is None else _private_draw(private, heldout_ran(second)),
        repeated.detail if repeated.status is not recorded.status else "",
        repeated.status is Status.HARNESS_ERROR,
    )


def _parted(evaluation: Evaluation, own_cases: Collection[str]) -> tuple[Evaluation, tuple[CaseResult, ...]]:
    """Return the evaluation without its private cases, and these."""
    private = tuple(case for case in evaluation.split(Split.HELDOUT) if case.case not in own_cases)
    return replace(evaluation, cases=tuple(case for case in evaluation.cases if case not in private)), private


def _words(recorded: Trial, repeated: Trial, own: Evaluation | None) -> Iterator[Figure]:
    """Statuses and counts of cases, which are reproduced where they are equal."""
    first = recorded.evaluation
    assert first is not None
    if own is None or own.candidate_hash != first.candidate_hash:
        yield _word("kernel", first.candidate_hash[:12], "" if own is None else own.candidate_hash[:12])
    yield _word("status", recorded.status, repeated.status)
    for name, stage in (("compiled", Stage.COMPILE), ("correct", Stage.CORRECTNESS)):
        yield _word(name, _held(first, stage), "no" if own is None else _held(own, stage))
    for name, split in (("seen cases passed", Split.SEEN), ("held-out cases passed", Split.HELDOUT)):
        pairs = _pairs(first, own, split)
        if pairs:
            one, two = ([_correct(case) for case in side] for side in zip(*pairs, strict=True))
            reason = "" if one == two else f"differs on {_first_difference(pairs)}"
            yield Figure(FigureKind.CASES, name, _count(one), _count(two), _outcome(one == two), reason)


def _word(name: str, recorded: str, repeated: str) -> Figure:
    return Figure(FigureKind.STATUS, name, str(recorded), str(repeated), _outcome(recorded == repeated))


def _outcome(same: bool) -> Reproduction:
    return Reproduction.REPRODUCED if same else Reproduction.NOT_REPRODUCED


def _held(evaluation: Evaluation, stage: Stage) -> str:
    """Return whether a stage was reached and passed."""
    return _yes_no(any(verdict.passed for verdict in evaluation.verdicts if verdict.stage is stage))


def _yes_no(holds: bool) -> str:
    return "yes" if holds else "no"


def _correct(case: CaseResult) -> bool:
    return case.candidate in CORRECT


def _count(correct: Sequence[bool]) -> str:
    return f"{sum(correct)}/{len(correct)}"


def _first_difference(pairs: Sequence[Pair]) -> str:
    one, two = next(pair for pair in pairs if _correct(pair[0]) != _correct(pair[1]))
    return f"{one.label}: {one.candidate} → {two.candidate}"


def _pairs(first: Evaluation, own: Evaluation | None, split: Split) -> list[Pair]:
    """Cases of both sides with the same id and sizes."""
    here: Mapping[str, CaseResult] = {} if own is None else {case.case: case for case in own.split(split)}
    both = [(case, here[case.case]) for case in first.split(split) if case.case in here]
    return [(one, two) for one, two in both if one.label == two.label]


def _outcomes(recorded: Trial, own: Evaluation | None, same_device: bool) -> Iterator[Figure]:
    """The outcome of the trial, which rests on every case, also on those that the record leaves out."""
    if own is None or not same_device:  # another device may have room for fewer cases
        return
    apart = calibrates(recorded.agent, recorded.used)
    one, two = (outcome_of(each, calibration=apart) for each in (recorded.evaluation, own))
    same = one is two or (one, two) == (Outcome.SEEN_ONLY, Outcome.SOLVED)
    yield Figure(FigureKind.STATUS, "outcome", str(one), str(two), _outcome(same))


def _alone(
    first: Evaluation, own: Evaluation | None, own_cases: Collection[str], same_device: bool
) -> Iterator[Figure]:
    """Cases of the record that were not judged here: nothing speaks for what is said of them."""
    judged = [one.case for split in Split for one, _ in _pairs(first, own, split)]
    for case in first.cases:
        if case.case in judged or case.candidate is Status.NOT_RUN:
            continue
        skipped = not same_device and case.case in own_cases
        outcome = Reproduction.UNDECIDED if skipped else Reproduction.NOT_REPRODUCED
        yield Figure(FigureKind.CASES, f"case {case.label}", case.candidate, None, outcome, "not judged here")


def _numbers(
    first: Evaluation, own: Evaluation | None, environment: Environment, same_device: bool, task_changed: bool
) -> Iterator[Figure]:
    """Speedups: of each case that the record times, their geometric means, and that of recorded traffic.

    Those of the record are computed from its rounds. A mean is over all that its side times, and over the regimes that
    count there; an emulation runs as many cases as it was told to, and its means are over the same ones.
    """
    error = clock_error(environment)
    yield from _contradictions(first)
    first = replace(first, cases=tuple(_recomputed(first, case) for case in first.cases))
    told = same_device and not environment.device.emulated and not task_changed
    for split, name in _SPEED_NAMES.items():
        pairs = [pair for pair in _pairs(first, own, split) if pair[0].speedup is not None]
        for one, two in pairs:
            label = f"{name} at {one.label}"
            if two.speedup is not None:
                found = _speed([one], [two], error, same_device, lambda timing: timing.speedup)
                yield Figure(FigureKind.CASE_SPEEDUP, label, *found)
            elif two.candidate is not Status.PASSED:
                missing = f"no speedup here: {two.candidate}"
                yield Figure(FigureKind.CASE_SPEEDUP, label, one.speedup, None, Reproduction.NOT_REPRODUCED, missing)
            elif not task_changed:
                outcome = Reproduction.NOT_REPRODUCED if told else Reproduction.UNDECIDED
                yield Figure(FigureKind.CASE_SPEEDUP, label, one.speedup, None, outcome, "not timed here")
        both = [pair for pair in pairs if pair[1].speedup is not None]
        if both and own is not None and first.status is Status.PASSED:
            mine, here = ([case for case in side.split(split) if case.speedup is not None] for side in (first, own))
            if not told:
                mine, here = ([pair[side] for pair in both] for side in (0, 1))
            mine, here = list(counted(mine)), list(counted(here))
            if mine and here:
                found = _speed(mine, here, error, same_device, lambda timing: timing.credit)
                yield Figure(FigureKind.SPEEDUP, f"{name} over {len(here)} cases", *found)
    yield from _served(first, own, error, same_device)


def _served(first: Evaluation, own: Evaluation | None, error: float | None, same_device: bool) -> Iterator[Figure]:
    """The speedup of recorded traffic, which also rests on latencies: they say how much each case weighs."""
    one = served_speedup(first.cases) if first.status is Status.PASSED else None
    two = None if own is None else served_speedup(own.cases)
    if one is None or two is None:
        return
    noisy = any(case.timing is not None and case.timing.noisy for case in first.cases if case.recorded)
    found = _agreement(one, two, error, same_device, noisy)
    yield Figure(FigureKind.SPEEDUP, "speedup of recorded traffic", one, two, *found)


def _left_out(
    first: Evaluation, own: Evaluation | None, environment: Environment, same_device: bool
) -> Iterator[Figure]:
    """Cases and regimes that are judged or timed here while a record that has others is silent about them.

    A record could else keep those alone in which its kernel is right, or fast. An emulation runs as many as it was told
    to.
    """
    if own is None or first.status is not Status.PASSED:
        return
    told = same_device and not environment.device.emulated
    outcome = Reproduction.NOT_REPRODUCED if told else Reproduction.UNDECIDED
    for split, name in _SPEED_NAMES.items():
        recorded, here = first.split(split), own.split(split)
        for what, timed in ((f"{split} cases with a result", False), (f"cases with a {name}", True)):
            known = {case.label for case in recorded if case.speedup is not None or not timed}
            told_here = [case for case in here if case.speedup is not None or not timed]
            left = [case for case in told_here if case.label not in known]
            silent = not recorded or (timed and not known and first.effort is not Effort.FULL)  # nothing was to be told
            if left and not silent:
                counts = (f"{len(known)} cases", f"{len(known) + len(left)} cases")
                reason = f"the record has none at {left[0].label}"
                yield Figure(FigureKind.CLAIM, what, *counts, outcome, reason)


def _contradictions(first: Evaluation) -> Iterator[Figure]:
    """Timings of the record that contradict their own rounds."""
    for case in first.cases:
        found = _recomputed(first, case).timing
        why = "" if case.timing is None else contradiction(case.timing, found)
        if case.timing is not None and why:
            label = f"{_SPEED_NAMES[case.split]} at {case.label} by its rounds"
            here = None if found is None else found.speedup
            yield Figure(FigureKind.CLAIM, label, case.timing.speedup, here, Reproduction.NOT_REPRODUCED, why)


def _recomputed(evaluation: Evaluation, case: CaseResult) -> CaseResult:
    if case.timing is None:
        return case
    return replace(case, timing=recomputed(case.timing, evaluation.environment.device, evaluation.effort))


def _speed(
    mine: Sequence[CaseResult],
    here: Sequence[CaseResult],
    error: float | None,
    same_device: bool,
    value: Callable[[CaseTiming], Estimate],
) -> tuple[Estimate, Estimate, Reproduction, str]:
    """Compare the geometric means of both sides over some cases."""
    sides = [[case.timing for case in side if case.timing is not None] for side in (mine, here)]
    one, two = (combine([value(timing) for timing in side]) for side in sides)
    assert one is not None and two is not None  # every case has a speedup
    noisy = any(timing.noisy for side in sides for timing in side)
    return one, two, *_agreement(one, two, error, same_device, noisy)


def _agreement(
    one: Estimate, two: Estimate, error: float | None, same_device: bool, noisy: bool
) -> tuple[Reproduction, str]:
    """Return what `decide` says of two measurements of one device; those of two are undecided."""
    return decide(one, two, error=error, noisy=noisy) if same_device else (Reproduction.UNDECIDED, _OTHER_DEVICE)


def decide(one: Estimate, two: Estimate, *, error: float | None, noisy: bool) -> tuple[Reproduction, str]:
    """Say whether two measurements agree: their intervals, wider by the clock's error on either side, overlap.

    Two that overlap because one of them is noisy are undecided; two that do not are not reproduced, noisy or not.
    Without a known error of the clock, two that do not overlap are undecided.
    """
    known = error or 0.0
    overlap = one.low * (1 - known) <= two.high * (1 + known) and two.low * (1 - known) <= one.high * (1 + known)
    if not overlap and error is None:
        return Reproduction.UNDECIDED, "the intervals do not overlap, and the error of an emulation's ratio is unknown"
    if not overlap:
        return Reproduction.NOT_REPRODUCED, "the intervals do not overlap"
    return (Reproduction.UNDECIDED, "an interval is too wide to tell") if noisy else (Reproduction.REPRODUCED, "")


def _private_draw(cases: Sequence[CaseResult], ran: bool) -> PrivateDraw | None:
    """Return how a trial did on the private cases; None where none was judged."""
    outcomes = [(case, heldout_outcome(case, ran)) for case in cases]
    passed = [case for case, outcome in outcomes if outcome is HeldoutOutcome.BOTH_PASS]
    failed = [case for case, outcome in outcomes if outcome is HeldoutOutcome.REGRESSION]
    if not passed and not failed:
        return None
    return PrivateDraw(
        len(passed),
        len(passed) + len(failed),
        combine(case.credit for case in counted(passed) if case.credit is not None),
        tuple(f"{case.label}: {case.candidate}" for case in failed),
    )


def verification(recorded: RunRecords, repeated: RunRecords, rejudging: Rejudging) -> Verification:
    """Compare every trial that was judged again with its record."""
    records = {trial.key: trial for trial in recorded.trials}
    here = {trial.key: trial for trial in repeated.trials}
    choice, compared = rejudging.choice, []
    for key in choice.trials:
        task, record = rejudging.tasks[key[1]], records[key]
        claims = tuple(_claims(recorded.info, record, task))
        changed = task.content_hash != record.task_hash and not claims
        found = compare_trial(record, here[key], task_changed=changed, own_cases={case.id for case in task.cases})
        compared.append(replace(found, figures=(*found.figures, *claims)))
    return Verification(
        run=recorded.info.run,
        records_hash=choice.records_hash,
        verified_at=now(),
        arena_version=repeated.info.arena_version,
        recorded_on=recorded.info.environment,
        repeated_on=repeated.info.environment,
        clock_error=clock_error(repeated.info.environment),
        selection_seed=choice.selection_seed,
        draw_seed=choice.draw_seed,
        private_cases=choice.asked.private_cases,
        verifiable=len(verifiable(recorded)),
        trials=tuple(compared),
        notes=rejudging.notes,
        options=repeated.info.evaluation,
    )


def judged_here(repeated: RunRecords, rejudging: Rejudging) -> JudgedHere:
    """Return what a board shows in place of a record: the trials as they were judged here, without private cases."""
    trials = []
    for trial in repeated.trials:
        own = None
        if trial.evaluation is not None:
            own, _ = _parted(trial.evaluation, {case.id for case in rejudging.tasks[trial.task].cases})
            own = replace(own, cases=tuple(map(_without_rounds, own.cases)))
        trials.append(replace(trial, evaluation=own))
    return JudgedHere(
        rejudging.choice.records_hash,
        tuple(trials),
        tuple(name for name, task in rejudging.planned.items() if task.latency_bound),
        {name: task.family for name, task in rejudging.planned.items()},
    )


def _without_rounds(case: CaseResult) -> CaseResult:
    return case if case.timing is None else replace(case, timing=replace(case.timing, rounds=()))


def _claims(info: RunInfo, record: Trial, task: Task) -> Iterator[Figure]:
    """Yield wrong claims of a run about a task: its content in the release, its family, whether latency bounds it."""
    release = last_release()
    if release and info.corpus and info.corpus.hash != release.hash and info.corpus.release == release.number:
        yield _claim("release", str(info.corpus), f"{release.number}, {release.hash[:12]}")
    elif release and info.corpus and info.corpus.hash == release.hash:
        known = release.tasks.get(task.id, "")
        if known != record.task_hash and (known or task.content_hash == record.task_hash):
            yield _claim("task in its release", record.task_hash[:12], known[:12])
    if task.content_hash != record.task_hash:
        return
    bound, is_bound = task.id in info.latency_bound, bool(task.latency_bound)
    if bound is not is_bound:
        yield _claim("bound by latency", _yes_no(bound), _yes_no(is_bound))
    traffic = {case.id: (case.calls, case.gpu_share, case.regime) for case in task.cases}
    for case in record.evaluation.cases if record.evaluation else ():
        said, here = (case.calls, case.gpu_share, case.regime), traffic.get(case.case, (0, 0.0, ""))
        if said != here:
            yield _claim(f"traffic and regime of {case.case}", _spelled(said), _spelled(here))
    if info.families and info.families.get(task.id) != task.family:
        yield _claim("family", info.families.get(task.id, ""), task.family)


def _spelled(said: tuple[float, float, str]) -> str:
    calls, share, regime = said
    return f"{calls:g} calls, {share:g} % of the GPU's time, {regime or 'usual values'}"


def _claim(name: str, recorded: str, here: str) -> Figure:
    return Figure(FigureKind.CLAIM, name, recorded, here, Reproduction.NOT_REPRODUCED)
