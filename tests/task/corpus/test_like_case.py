"""Cases that an author makes up from a seen one."""

from __future__ import annotations

from dataclasses import replace

import pytest

import arena
from arena.errors import UsageError
from arena.judge.selection import select_cases, with_made_up_case
from arena.results.outcome import Outcome, outcome_of
from arena.task.corpus.like_case import like_case
from arena.task.expression import Expression
from arena.task.options import RUN, SERVE, Options, options_of
from tests.reports.builders import trial

TASK = arena.load_task("rms_norm")


def test_the_smallest_seen_case_is_changed_or_the_one_that_is_named() -> None:
    made = like_case(TASK, "M=5 N=4097 dtype=bfloat16")
    assert (made.id, made.label, made.timed) == ("like-seen-01", "M=5 N=4097 bfloat16", True)
    assert made.id not in {case.id for case in TASK.cases}
    assert like_case(TASK, "M=5 eps=0.5", ["seen-03"]).label == "M=5 N=1024 float16 eps=0.5"
    assert like_case(TASK, "M=5, bfloat16") == like_case(TASK, "M=5 dtype=bfloat16")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("M=0", r"M=0 is outside the domain of M: 1 … \d+"),
        ("M=4.5", "M=4.5 is outside the domain of M"),
        ("dtype=int8", "dtype=int8 is no dtype of dtype: one of float32"),
        ("K=4", "has no `K`; expected one of: M, N, dtype, eps"),
        ("eps=many", "eps=many is not a float32"),
        ("", "nothing is changed; expected one of: M, N"),
        ("M=3", "like 'M=3', from seen-01"),
    ],
)
def test_what_the_task_does_not_admit_is_refused_with_the_domain(text: str, says: str) -> None:
    task = replace(TASK, constraints=(*TASK.constraints, Expression("M != 3")))
    with pytest.raises(UsageError, match=says):
        like_case(task, text)


def test_a_case_of_the_task_is_not_made_up() -> None:
    with pytest.raises(UsageError, match=r"that is heldout-01 of .*; judge it with `case`"):
        like_case(TASK, "M=1 N=1")
    with pytest.raises(UsageError, match="like changes one seen case, not heldout-01"):
        like_case(TASK, "M=5", ["heldout-01"])


def test_it_is_the_only_case_that_is_judged() -> None:
    options = Options(like="M=5", case=("seen-03",))
    task = with_made_up_case(TASK, options)
    assert [case.id for case in select_cases(task, task.seen, options)] == ["like-seen-03"] and not task.heldout
    assert with_made_up_case(TASK, Options()) is TASK


def test_nothing_that_is_made_up_is_a_verdict() -> None:
    evaluation = trial(TASK.id).evaluation
    assert evaluation is not None and outcome_of(evaluation).solves and evaluation.seen_speedup
    made = replace(evaluation, made_up="M=5")
    assert outcome_of(made) is Outcome.NO_VERDICT and made.seen_speedup is None


@pytest.mark.parametrize("command", [RUN, SERVE])
def test_no_run_and_no_server_takes_it(command: str) -> None:
    with pytest.raises(UsageError, match="unknown option `like`"):
        options_of({"like": "M=5"}, command)
