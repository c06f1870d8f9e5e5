"""Scores that Inspect stores for a verdict: the server's rewards under each scheme, and metrics over them."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra `inspect`; run tools/external.sh inspect")

from inspect_ai.scorer import SampleScore, Score

from arena import Client
from arena.integrations.asking import facts
from arena.integrations.inspect_tasks import fast_p, gain
from arena.integrations.inspect_values import values_of
from tests.external.conftest import Address
from tests.external.rewards import SPEEDUPS, WRONG, expected


def verdicts(fake: Address) -> dict[str, dict[str, Any]]:
    with Client(*fake) as client:
        return {kernel: facts(client.finish(client.begin("scale").episode, kernel)) for kernel in (*SPEEDUPS, WRONG)}


def test_rewards_are_those_of_the_server(fake: Address) -> None:
    for kernel, final in verdicts(fake).items():
        values = values_of(final)
        assert values["reward"] == expected(kernel, "dense") and values["bounded_reward"] == expected(kernel, "bounded")
        assert values["solved"] == (kernel != WRONG) and values["speedup"] == SPEEDUPS.get(kernel, 0.0)


def test_a_drop_is_of_kernels_that_passed_all_seen_cases(fake: Address) -> None:
    final = verdicts(fake)["# fast"]
    assert values_of({**final, "outcome": "solved"})["correctness_drop"] == 0
    lost = values_of({**final, "outcome": "overfit"})
    assert (lost["correctness_drop"], lost["solved"], lost["overfit"]) == (1, 0, 1)
    assert math.isnan(values_of({**final, "outcome": "failed"})["correctness_drop"])


def test_metrics_by_hand() -> None:
    scores = [SampleScore(score=Score(value=value)) for value in (0.0, 0.5, 2.0, 4.0)]
    assert gain()(scores) == pytest.approx(8 ** (1 / 4)), "a failure and a slower kernel count as 1"
    assert fast_p()(scores) == {"0": 0.75, "1": 0.5, "1.5": 0.5, "2": 0.25}
