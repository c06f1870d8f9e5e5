"""Which recorded trials are judged again: those that ended in a given way. Used by `arena run --retry`."""

from __future__ import annotations

from collections.abc import Sequence

from arena.errors import UsageError
from arena.results.outcome import Outcome, ended_by, outcome_of_trial
from arena.results.record import Trial
from arena.results.verdict import Status

NOISY = "noisy"
"""trials with a case whose interval stayed wide"""


def endings(words: Sequence[str]) -> tuple[str, ...]:
    """Return the endings that these words name: outcomes, with `-` or `_` for a space, stage statuses, or `noisy`.

    Raises:
        UsageError: a word names none.
    """
    known = {str(one).replace(" ", "-"): str(one) for one in Outcome}
    known |= {str(one).replace("_", "-"): str(one) for one in Status if one is not Status.PASSED} | {NOISY: NOISY}
    found = []
    for word in words:
        name = word.strip().lower().replace("_", "-").replace(" ", "-")
        if name not in known:
            raise UsageError(f"--retry {word}: no trial ends so; expected one of {', '.join(sorted(known))}")
        found.append(known[name])
    return tuple(found)


def ended_so(trial: Trial, wanted: Sequence[str]) -> bool:
    """Return whether a trial ended in one of these ways, as `endings` names them."""
    if not wanted:
        return False
    status = trial.status if trial.evaluation is None else ended_by(trial.evaluation)
    cases = trial.evaluation.cases if trial.evaluation is not None else ()
    noisy = any(case.timing is not None and case.timing.noisy for case in cases)
    return bool({str(outcome_of_trial(trial)), str(status), *([NOISY] if noisy else [])} & set(wanted))
