"""What adapters share: rewards, waiting, refusals and splits."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from arena import AsyncClient, Client
from arena.errors import NotServed
from arena.integrations.asking import RewardScheme, facts, is_refusal, purpose, tasks_by_split, when_free
from arena.runs.serve.routes import EpisodeServer
from arena.runs.serve.views import ServedTask
from arena.task.corpus.split import TaskSplit
from tests.runs.serve.serving import served


def test_schemes_and_refusals_of_a_server(tmp_path: Path) -> None:
    with (
        served(tmp_path, evaluations=1) as (episodes, _),
        EpisodeServer(episodes) as server,
        Client(server.address, server.token) as client,
    ):
        one = client.begin("scale").episode
        step = client.evaluate(one, "# fast")
        assert (RewardScheme.DENSE.of(step), RewardScheme.BOUNDED.of(step)) == (1.0, 0.475)
        assert facts(step)["result"]["speedup"] == 2.0
        with pytest.raises(NotServed) as refused:
            client.evaluate(one, "# fast")
        assert is_refusal(refused.value)
        with pytest.raises(NotServed) as unknown:
            client.evaluate("nothing", "# fast")
        assert not is_refusal(unknown.value)


def test_a_busy_server_is_asked_again_and_other_errors_are_raised() -> None:
    answers: list[NotServed | int] = [NotServed("429: busy", 429, 0.0), NotServed("429: busy", 429, 0.0), 5]

    async def call() -> int:
        answer = answers.pop(0)
        if isinstance(answer, NotServed):
            raise answer
        return answer

    assert asyncio.run(when_free(call)) == 5
    answers.append(NotServed("503: no verdict", 503))
    with pytest.raises(NotServed, match="no verdict"):
        asyncio.run(when_free(call))


@pytest.mark.slow
def test_many_rollouts_wait_for_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server with one place, which refuses the others with 429."""

    async def rollouts(address: str, token: str) -> list[float]:
        async with AsyncClient(address, token) as client:
            episodes = [(await client.begin("scale")).episode for _ in range(4)]
            steps = [when_free(partial(client.evaluate, one, "# fast")) for one in episodes]
            return [step.reward for step in await asyncio.gather(*steps)]

    monkeypatch.setattr("arena.runs.serve.episodes._FIRST_GUESS_S", 0.5)
    with (
        served(tmp_path, capacity=1) as (episodes, _),
        EpisodeServer(episodes) as server,
    ):
        assert asyncio.run(rollouts(server.address, server.token)) == [1.0] * 4


def test_splits_are_types_and_suites_and_an_evaluation_task_makes_one_a_test_split() -> None:
    tasks = [
        ServedTask("hip2hip/moe/a", "hip2hip", TaskSplit.TRAIN),
        ServedTask("hip2hip/norm/b", "hip2hip", TaskSplit.EVALUATION),
        ServedTask("torch2hip/level1/c", "torch2hip", TaskSplit.TRAIN),
    ]
    found = tasks_by_split(tasks)
    assert list(found) == ["hip2hip", "torch2hip", "hip2hip/moe", "hip2hip/norm", "torch2hip/level1"]
    assert [purpose(found[name]) for name in ("hip2hip", "hip2hip/moe", "hip2hip/norm")] == ["test", "train", "test"]
