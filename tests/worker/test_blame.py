"""What a worker accuses its own candidate of."""

from __future__ import annotations

from arena.processes.protocol import Blame
from arena.worker.loaders import blame
from arena.worker.operators import RuleViolation


def raised(outer: type[Exception], inner: Exception, *, from_it: bool) -> Exception:
    """An exception as it is caught where another was raised while, or because, `inner` was handled."""
    try:
        try:
            raise inner
        except type(inner) as problem:
            if from_it:
                raise outer("wrapped") from problem
            raise outer("wrapped")  # noqa: B904 - on purpose
    except outer as found:
        return found


def test_a_broken_rule_is_told_however_it_is_wrapped() -> None:
    assert blame(RuleViolation("no"), loading=True) is Blame.RULE_VIOLATION
    for from_it in (True, False):
        assert blame(raised(ValueError, RuleViolation("no"), from_it=from_it), loading=False) is Blame.RULE_VIOLATION


def test_other_errors_are_what_they_were() -> None:
    assert blame(raised(ValueError, KeyError("k"), from_it=True), loading=False) is Blame.LAUNCH_ERROR
    assert blame(SyntaxError("no"), loading=True) is Blame.COMPILE_ERROR
    assert blame(ImportError("no"), loading=True) is Blame.LOAD_ERROR
    assert blame(MemoryError(), loading=False) is Blame.OUT_OF_MEMORY
