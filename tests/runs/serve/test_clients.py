"""Clients of a server: each has its own episodes and limits, and none takes another one's place."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from arena import Client
from arena.errors import NotServed, UsageError
from arena.runs.serve.clients import ClientAccount as Known
from arena.runs.serve.clients import local, read_clients
from arena.runs.serve.routes import EpisodeServer
from tests.runs.serve.serving import TASK, Judge, served

ANNA = Known("anna", "a" * 16, agent_token="g" * 16, agent_episodes=1)
BERT = Known("bert", "b" * 16)
DEADLINE_S = 120.0


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something holds, which other threads see to."""
    ended = threading.Event()
    for _ in range(int(DEADLINE_S / 0.01)):
        if condition():
            return
        ended.wait(0.01)
    raise AssertionError("it did not come true")


class Gate:
    """A judge that works only while it is open, and knows whose kernels it has judged."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.open.wait(DEADLINE_S)


def begin_request(server: EpisodeServer, token: str, episode: str, kernel: str = "fast") -> http.client.HTTPConnection:
    """Ask for an evaluation, and leave its answer where it is."""
    connection = http.client.HTTPConnection("127.0.0.1", int(server.address.rsplit(":", 1)[1]), timeout=DEADLINE_S)
    body = json.dumps({"kernel": kernel})
    connection.request("POST", f"/episodes/{episode}/evaluate", body, {"Authorization": f"Bearer {token}"})
    return connection


def test_an_episode_is_unknown_to_other_clients(tmp_path: Path) -> None:
    with served(tmp_path, clients=[ANNA, BERT]) as (episodes, judge), EpisodeServer(episodes) as server:
        anna, bert = Client(server.address, ANNA.token), Client(server.address, BERT.token)
        hers = anna.begin("scale", agent="policy", seed=7).episode
        his = bert.begin("scale", agent="policy", seed=7)
        assert his.episode != hers and (his.agent, his.attempt) == ("bert.policy", 1)
        for call in (bert.episode, bert.evaluate, bert.finish):
            with pytest.raises(NotServed, match="404: there is no episode"):
                call(*([hers] if call == bert.episode else [hers, "fast"]))
        assert [answer.status for answer in bert.batch([(hers, "fast"), (his.episode, "fast")])] == [404, 200]
        assert anna.episode(hers).evaluations == 0 and len(judge.options) == 1
        assert (anna.status().used.client, bert.status().used.evaluations) == ("anna", 1)


def test_agents_begin_as_many_episodes_as_their_client_says(tmp_path: Path) -> None:
    with served(tmp_path, clients=[ANNA]) as (episodes, _), EpisodeServer(episodes) as server:
        agent, owner = Client(server.address, str(ANNA.agent_token)), Client(server.address, ANNA.token)
        one = agent.begin("scale", seed=1).episode
        assert agent.begin("scale", seed=1).episode == one
        with pytest.raises(NotServed, match="403: anna has used 1 of 1 agent_episodes"):
            agent.begin("scale", seed=2)
        with pytest.raises(NotServed, match="403: `agent_token` does not open this"):
            agent.finish(one, "fast")
        assert owner.begin("scale", seed=2).episode and owner.finish(one, "fast").reward == 1.0


def test_agents_of_a_server_without_a_file_begin_none_unless_told_so(tmp_path: Path) -> None:
    with (
        served(tmp_path) as (episodes, _),
        EpisodeServer(episodes) as server,
        Client(server.address, server.agent_token) as agent,
        pytest.raises(NotServed, match="403"),
    ):
        agent.begin("scale")
        with Client(server.address, server.token) as owner:
            one = owner.begin("scale").episode
        with Client(server.address, server.agent_token) as agent:
            assert agent.evaluate(one, "fast").reward == 1.0


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [({"episodes": 2}, 2), ({"evaluations": 3}, 3), ({"kernel_bytes": 9}, 2)],
)
def test_what_is_used_up_is_so_after_a_restart(tmp_path: Path, limits: dict[str, int], allowed: int) -> None:
    """Each evaluation is in an episode of its own, with the four bytes `fast`; each kind of limit ends them."""
    client, done = structs.replace(ANNA, **limits), 0
    for _ in range(2):
        with served(tmp_path, clients=[client, BERT]) as (episodes, _), EpisodeServer(episodes) as server:
            with Client(server.address, client.token) as anna, pytest.raises(NotServed, match="403") as refused:
                for _ in range(5):
                    anna.evaluate(anna.begin("scale").episode, "fast")
                    done += 1
            (kind,) = limits
            assert f"of {limits[kind]} {kind}" in str(refused.value)
            with Client(server.address, BERT.token) as bert:
                assert bert.evaluate(bert.begin("scale").episode, "fast").reward == 1.0
    assert done == allowed


def test_what_the_harness_could_not_judge_is_given_back(tmp_path: Path) -> None:
    client = structs.replace(ANNA, evaluations=1)
    with (
        served(tmp_path, clients=[client]) as (episodes, judge),
        EpisodeServer(episodes) as server,
        Client(server.address, client.token) as anna,
    ):
        one = anna.begin("scale").episode
        judge.failing.add("scale")
        with pytest.raises(NotServed, match="503"):
            anna.evaluate(one, "fast")
        judge.failing.clear()
        assert anna.evaluate(one, "fast").reward == 1.0


def test_requests_for_one_episode_take_no_places_but_one(tmp_path: Path) -> None:
    """A place is for what is judged or waits for a judge, and those wait for each other."""
    gate = Gate()
    greedy = structs.replace(ANNA, requests=40)
    with (
        served(tmp_path, Judge(gate), capacity=4, clients=[greedy, BERT]) as (episodes, _),
        EpisodeServer(episodes) as server,
        Client(server.address, greedy.token) as anna,
    ):
        one = anna.begin("scale").episode
        waiting = [begin_request(server, greedy.token, one) for _ in range(39)]
        wait_for(lambda: gate.begun.is_set() and episodes.clients.usage(greedy).requests == 39)
        assert (episodes.overview().waiting, episodes.clients.usage(greedy).places) == (1, 1)
        with Client(server.address, BERT.token) as bert:
            his = bert.begin("scale").episode
            answer: dict[str, Any] = {}
            thread = threading.Thread(target=lambda: answer.update(step=bert.evaluate(his, "fast")))
            thread.start()
            wait_for(lambda: episodes.overview().waiting == 2)
            gate.open.set()
            thread.join(DEADLINE_S)
            assert answer["step"].reward == 1.0
        for connection in waiting:
            connection.close()


def test_too_many_requests_at_once_are_refused_and_hang_up_frees_them(tmp_path: Path) -> None:
    gate = Gate()
    client = structs.replace(ANNA, requests=4)
    with (
        served(tmp_path, Judge(gate), clients=[client, BERT]) as (episodes, judge),
        EpisodeServer(episodes) as server,
        Client(server.address, client.token) as anna,
    ):
        one = anna.begin("scale").episode
        waiting = [begin_request(server, client.token, one) for _ in range(4)]
        wait_for(lambda: gate.begun.is_set() and episodes.clients.usage(client).requests == 4)
        with pytest.raises(NotServed, match="429: as many requests at once as may be") as refused:
            anna.episode(one)
        assert refused.value.retry_after_s == 1
        for connection in waiting:
            connection.close()
        wait_for(lambda: episodes.clients.usage(client).requests == 1)  # the judge has a kernel, and goes on
        gate.open.set()
        wait_for(lambda: episodes.clients.usage(client).requests == 0)
        assert anna.episode(one).evaluations == len(judge.options) == 1


def test_whoever_hangs_up_while_it_waits_for_a_judge_leaves_the_queue(tmp_path: Path) -> None:
    gate = Gate()
    with served(tmp_path, Judge(gate), clients=[ANNA, BERT]) as (episodes, judge), EpisodeServer(episodes) as server:
        anna, bert = Client(server.address, ANNA.token), Client(server.address, BERT.token)
        first, second = anna.begin("scale").episode, bert.begin("scale").episode
        judged = begin_request(server, ANNA.token, first)
        assert gate.begun.wait(DEADLINE_S)
        gone = begin_request(server, BERT.token, second)
        wait_for(lambda: episodes.overview().waiting == 2)
        gone.close()
        wait_for(lambda: episodes.overview().waiting == 1)
        gate.open.set()
        assert judged.getresponse().status == 200 and len(judge.options) == 1
        assert bert.episode(second).left == 10 and bert.status().used.evaluations == 0


def test_clients_take_turns(tmp_path: Path) -> None:
    """Of one that asks for twelve evaluations at once, and one that asks for two, the second is not last."""
    gate, order = Gate(), []
    with served(tmp_path, Judge(gate), capacity=64, clients=[ANNA, BERT]) as (episodes, _):

        def evaluate(client: Known, episode: str) -> None:
            episodes.evaluate(episodes.clients.callers[client.token], episode, b"fast", False)
            order.append(client.name)

        names = [(client, episodes.begin(episodes.clients.callers[client.token], "scale", "x", None, None).episode)
                 for client, number in ((ANNA, 12), (BERT, 2)) for _ in range(number)]  # fmt: skip
        threads = [threading.Thread(target=evaluate, args=one) for one in names]
        for thread in threads:
            before = episodes.overview().waiting
            thread.start()
            wait_for(lambda before=before: episodes.overview().waiting == before + 1)  # type: ignore[misc]
        gate.open.set()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert Counter(order) == {"anna": 12, "bert": 2}
    assert max(place for place, name in enumerate(order) if name == "bert") < 8


def test_a_restart_without_a_task_of_an_unfinished_episode_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, _):
        episodes.begin(episodes.clients.callers[episodes.clients.known[0].token], "scale", "x", None, None)
    told = f"unfinished episode of {TASK}, which is not served now"
    with pytest.raises(UsageError, match=told), served(tmp_path, tasks=[TASK + "_too"]):
        pass


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clients: []", "at least one"),
        ("clients:\n- name: anna", "missing required field `token`"),
        ("clients:\n- {name: anna, token: short}", r"\[0\]\.token"),
        ("clients:\n- {name: a/b, token: aaaaaaaaaaaaaaaa}", r"\.name"),
        ("clients:\n- {name: anna, token: aaaaaaaaaaaaaaaa, place: 3}", "unknown field `place`"),
        ("clients:\n- {name: anna, token: aaaaaaaaaaaaaaaa, places: 0}", "places"),
        ("clients:\n- {name: local, token: aaaaaaaaaaaaaaaa}", "name it otherwise"),
        ("clients:\n- &a {name: a, token: aaaaaaaaaaaaaaaa}\n- *a", "a name occurs twice: a"),
        ("clients:\n- {name: a, token: aaaaaaaaaaaaaaaa, agent_token: aaaaaaaaaaaaaaaa}", "a token occurs twice"),
        ("other: 1", "expected `clients:`"),
    ],
)
def test_a_file_of_clients_that_is_wrong(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "clients.yaml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(UsageError, match=told) as problem:
        read_clients(path)
    assert "aaaaaaaa" not in str(problem.value), "a token is no text for terminals"


def test_a_file_of_clients_is_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "clients.yaml"
    path.write_text("clients:\n- {name: anna, token: aaaaaaaaaaaaaaaa, episodes: 3}\n", encoding="utf-8")
    path.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        read_clients(path)
    path.chmod(0o600)
    (anna,) = read_clients(path)
    assert (anna.name, anna.episodes, anna.evaluations, anna.agent_token) == ("anna", 3, None, None)
    with pytest.raises(UsageError, match="No such file"):
        read_clients(tmp_path / "none.yaml")


def test_tokens_that_are_not_given_are_made_up() -> None:
    one, other = local(1), local(1)
    assert len({one.token, one.agent_token, other.token, other.agent_token}) == 4
