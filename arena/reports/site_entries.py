"""The runs of a leaderboard, each with what we found out about it ourselves.

What raises the level lies in a folder that the owner of the board names, where nobody else writes: a submission says
nothing about its own verification.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from arena.errors import RecordError, UsageError
from arena.reports.groups import Group, groups
from arena.reports.intervals import Quantity, Tally, estimate
from arena.reports.kernel_verdicts import (
    KernelVerdict,
    VerdictFile,
    VerdictOnKernel,
    digest_of,
    kernel_file,
    read_verdicts,
    verdicts_path,
)
from arena.reports.report_warnings import mixture
from arena.reports.rows import TrialRow, trial_rows
from arena.results.effort import Effort
from arena.results.outcome import Outcome
from arena.results.verification import (
    FILE,
    JUDGED_FILE,
    JudgedHere,
    Reproduction,
    TrialVerification,
    Verification,
)
from arena.runs import records
from arena.runs.records import RunRecords
from arena.runs.submission import read_submission, records_hash
from arena.task.corpus import strict_yaml

RECORDS_ONLY, REJUDGED, AUDITED = "records only", "re-judged by us", "transcript audited"
NOT_REPRODUCED = "claims not reproduced"
CLAIMED = "claimed"
UNKNOWN_RELEASE = "release unknown"
TrialKey = tuple[str, str, int]
_SLUG = re.compile(r"[^a-z0-9]+")
_SLUG_CHARACTERS, _SLUG_DIGITS = 48, 8


@dataclass(frozen=True)
class Audit:
    """An audit: who read the transcripts of which agents, when, and what was found."""

    by: str
    date: str
    found: str
    agents: tuple[str, ...]


@dataclass(frozen=True)
class BoardEntry:
    """One run of the board. `notes`: what does not count, and why.

    `rows`: of trials that were judged again here, what was found here; one with a claim that was not reproduced is not
    credited.
    """

    run: RunRecords
    rows: tuple[TrialRow, ...]
    verification: Verification | None
    audit: Audit | None
    notes: tuple[str, ...]
    judged: frozenset[TrialKey] = frozenset()
    """the trials that were judged again here, on unchanged tasks and the same kind of device"""
    verdicts: VerdictFile | None = None
    kernels: Mapping[tuple[str, str, int], VerdictOnKernel] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the run's name."""
        return self.run.info.run

    @property
    def mixed(self) -> bool:
        """Return whether its trials were made by different judges, agents' programs or limits."""
        return bool(mixture(self.run))

    @cached_property
    def groups(self) -> list[Group]:
        """Measure each agent on all tasks and on each task type."""
        return groups(self.rows)

    @property
    def corpus(self) -> str:
        """Return the release of its tasks, with the hash."""
        return UNKNOWN_RELEASE if self.run.info.corpus is None else str(self.run.info.corpus)

    @property
    def board(self) -> tuple[str, str, str]:
        """Return what a board has in common: full hash of the corpus, platform and architecture, device."""
        corpus, device = self.run.info.corpus, self.run.info.environment.device
        return (self.corpus if corpus is None else corpus.hash), f"{device.platform} {device.arch}", device.name

    @property
    def day(self) -> str:
        """Return the day on which the run began, as its record says."""
        moment = parsed(self.run.info.started_at)
        return "unknown" if moment is None else moment.date().isoformat()

    def verified(self, agent: str, task_type: str | None = None) -> tuple[TrialVerification, ...]:
        """Return the trials of an agent that were judged again here, on unchanged tasks."""
        trials = () if self.verification is None else self.verification.trials
        return tuple(
            trial
            for trial in trials
            if trial.agent == agent and not trial.task_changed and task_type in (None, trial.task_type)
        )

    def is_claim(self, row: TrialRow) -> bool:
        """Return whether a trial has a kernel that was not judged again here: its figures are its author's alone."""
        return row.handed_in and (row.agent, row.task, row.attempt) not in self.judged

    def claimed(self, agent: str, task_type: str | None = None) -> int:
        """Return how many trials of an agent are claims. One that has any has no rank."""
        mine = [row for row in self.rows if row.agent == agent and task_type in (None, row.task_type)]
        return sum(map(self.is_claim, mine))

    def level(self, agent: str, task_type: str | None = None) -> str:
        """Return the verification level of an agent's row, with how many trials and figures it is about."""
        levels, trials = [], self.verified(agent, task_type)
        outcomes = Counter(figure.outcome for trial in trials for figure in trial.figures)
        reproduced, undecided = outcomes[Reproduction.REPRODUCED], outcomes[Reproduction.UNDECIDED]
        wrong = outcomes[Reproduction.NOT_REPRODUCED]
        if reproduced or wrong:
            kept = [row for row in self.rows if row.agent == agent and task_type in (None, row.task_type)]
            of = f"{len(trials)} of {sum(row.status is not None for row in kept)} trials"
            figures = f"{reproduced} of {reproduced + wrong + undecided} figures reproduced"
            figures += f", {undecided} undecided" if undecided else ""
            levels.append(f"{NOT_REPRODUCED if wrong else REJUDGED} ({of}, {figures})")
        if self.audit is not None and agent in self.audit.agents:
            levels.append(f"{AUDITED} ({self.audit.date})")
        return ", ".join(levels) or RECORDS_ONLY

    def flag(self, agent: str, task_type: str | None = None) -> str:
        """Return what stands beside an agent's name: claims not reproduced, verdicts on its kernels; empty: none."""
        trials = self.verified(agent, task_type)
        wrong, claims = sum(trial.not_reproduced for trial in trials), sum(len(trial.figures) for trial in trials)
        flags = [f"{wrong} of {claims} {NOT_REPRODUCED}"] if wrong else []
        unseen = self.claimed(agent, task_type)
        flags += [f"{unseen} trials {CLAIMED}"] if unseen else []
        mine = [key for key in self.kernels if key[0] == agent and task_type in (None, key[1].split("/")[0])]
        counts = Counter(self.kernels[key].verdict for key in mine)
        found = [f"{counts[one]} {one}" for one in KernelVerdict if counts[one]]
        return ", ".join(flags + ([f"kernels read: {', '.join(found)}"] if found else []))

    def private_drop(self, agent: str, task_type: str | None = None) -> Quantity | None:
        """Return the share of trials, correct on seen cases, that fail a private held-out case."""
        tried: dict[str, list[bool]] = {}
        for trial in self.verified(agent, task_type):
            if trial.private is not None:
                tried.setdefault(trial.task, []).append(trial.private.passed < trial.private.cases)
        return estimate([Tally(sum(failed), len(failed)) for failed in tried.values()], proportion=True)


def read_entries(runs: Sequence[Path], findings: Path | None = None) -> list[BoardEntry]:
    """Read run folders that anybody may have written, and what the owner of the board found about them.

    Args:
        runs: run folders; nothing in or beside them raises their level.
        findings: a folder with what `arena verify` wrote, `RUN.audit.yaml` and `RUN.verdicts.yaml`; None: none.

    Raises:
        RecordError: a folder is no run, or holds what no run holds; a verification cannot be read.
        UsageError: two runs have the same name, or others may write where findings lie.
    """
    _require_own(findings, runs)
    known = {} if findings is None else _verifications(findings)
    entries = [_entry(run, findings, known) for run in runs]
    for name, count in Counter(entry.name for entry in entries).items():
        if count > 1:
            raise UsageError(
                f"{count} runs are called {name!r}: a site has one of each name; rename one in its run.json"
            )
    return entries


def _require_own(findings: Path | None, runs: Sequence[Path]) -> None:
    """Raise `UsageError` where a run folder lies in the folder of findings, or around it."""
    if findings is None:
        return
    place = findings.resolve()
    for run in (one.resolve() for one in runs):
        if run.is_relative_to(place) or place.is_relative_to(run):
            raise UsageError(
                f"--findings {findings}: {run} lies there too, so a submission could bring its own verification; "
                "keep findings in a folder that you alone write, as `arena verify RUN --out FINDINGS/RUN` does"
            )


def _verifications(findings: Path) -> dict[str, tuple[Verification, JudgedHere | None]]:
    """Return the verifications of a folder by the hash of the records that they are about, the latest of each.

    Each with what was found here, but for those of older versions.
    """
    found = []
    for file in sorted(findings.glob(f"*/{FILE}")):
        judged = file.with_name(JUDGED_FILE)
        found.append((records.read(file, Verification), records.read(judged, JudgedHere) if judged.is_file() else None))
    return {one.records_hash: (one, here) for one, here in sorted(found, key=lambda pair: pair[0].verified_at)}


def _judged(verification: Verification | None, here: JudgedHere | None) -> frozenset[TrialKey]:
    """Return the trials that were judged again here, on unchanged tasks and the same kind of device."""
    if verification is None or here is None or verification.records_hash != here.records_hash:
        return frozenset()
    if not verification.recorded_on.comparable_with(verification.repeated_on):
        return frozenset()
    trials = (one for one in verification.trials if not one.task_changed and not one.no_verdict)
    return frozenset((one.agent, one.task, one.attempt) for one in trials)


def _as_found(run: RunRecords, here: JudgedHere | None, judged: Container[TrialKey]) -> RunRecords:
    """Return a run with what was found here in place of what it says, of its trials and of its tasks."""
    if here is None:
        return run
    found = {trial.key: trial for trial in here.trials if trial.key in judged}
    trials = tuple(
        replace(one, status=own.status, detail=own.detail, evaluation=own.evaluation) if own is not None else one
        for one, own in ((trial, found.get(trial.key)) for trial in run.trials)
    )
    unknown = tuple(name for name in run.info.latency_bound if name not in here.families)
    families = {**run.info.families, **here.families}
    return replace(
        run, info=replace(run.info, latency_bound=(*unknown, *here.latency_bound), families=families), trials=trials
    )


def _entry(
    path: Path, findings: Path | None, known: Mapping[str, tuple[Verification, JudgedHere | None]]
) -> BoardEntry:
    run = read_submission(path)
    if run.info.effort is not Effort.FULL:
        raise RecordError(f"{path}: its effort is {run.info.effort}; boards take evaluations of effort full alone")
    run_name, digest, notes = path.resolve().name, records_hash(path), []
    (verification, here), audit = known.get(digest, (None, None)), None
    judged = _judged(verification, here)
    try:
        rows = tuple(trial_rows([_as_found(run, here, judged)]))
    except (ValueError, ArithmeticError) as problem:
        raise out_of_range(path, problem) from None
    if verification is None and any(one.run == run.info.run for one, _ in known.values()):
        notes.append("The records changed after they were verified: the verification does not count.")
    if verification is not None and here is None:
        notes.append(f"The verification has no {JUDGED_FILE}: verify the run again.")
    file = None if findings is None else findings / f"{run_name}.audit.yaml"
    if file is not None and file.is_file():
        data = strict_yaml.read(file, "audit").data
        audit = Audit(data["by"], data["date"], data["found"], tuple(data["agents"]))
        if data["records_hash"] != digest:
            notes.append("The records changed after the audit: the audit does not count.")
            audit = None
    compared = () if verification is None else verification.trials
    wrong = [(one.agent, one.task, one.attempt) for one in compared if one.not_reproduced and not one.task_changed]
    rows = tuple(_credited(rows, wrong))
    notes += [f"Not credited, since claims were not reproduced: {one[0]}, {one[1]}, attempt {one[2]}." for one in wrong]
    if run.info.selected or run.info.open_ended:
        notes.append("Its author chose which trials are in it.")
    mixed = mixture(run)
    if mixed:
        notes.append(f"Mixed: {'; '.join(mixed)}.")
    verdicts = None if findings is None else read_verdicts(verdicts_path(findings, run_name))
    kernels = {} if verdicts is None else dict(_with_verdict(run, verdicts))
    return BoardEntry(run, rows, verification, audit, tuple(notes), judged, verdicts, kernels)


def _with_verdict(run: RunRecords, verdicts: VerdictFile) -> Iterator[tuple[tuple[str, str, int], VerdictOnKernel]]:
    """Yield the trials whose kernel has a verdict; a kernel that changed since has another digest, and none."""
    known = verdicts.by_digest
    for trial in run.trials:
        file = kernel_file(run.path, trial)
        found = known.get(digest_of(file.read_bytes())) if file.is_file() else None
        if found is not None:
            yield trial.key, found


def _credited(rows: Iterable[TrialRow], wrong: Container[TrialKey]) -> Iterator[TrialRow]:
    """Yield the rows of a run, of trials with a wrong claim without any figure."""
    for row in rows:
        if (row.agent, row.task, row.attempt) in wrong:
            row = replace(row, outcome=Outcome.NOT_CREDITED, performed=False, heldout_ran=False, cases=())
            row = replace(row, speedup=None, heldout_speedup=None, served_speedup=None, roofline=None, sol=None)
        yield row


def out_of_range(run: Path, problem: Exception) -> RecordError:
    """Return the error for a record whose numbers no measurement has."""
    return RecordError(f"{run}: a number in its records is out of range ({problem}); judge the run again")


def parsed(moment: str) -> datetime | None:
    """Return a moment of a record in UTC; None where the text is none."""
    try:
        found = datetime.fromisoformat(moment)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def slug(name: str) -> str:
    """Return a file name for any name: ASCII, short, and different for different names in any file system."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_SLUG_DIGITS]
    words = _SLUG.sub("-", name.lower()).strip("-")[:_SLUG_CHARACTERS].strip("-")
    return f"{words}-{digest}" if words else digest
