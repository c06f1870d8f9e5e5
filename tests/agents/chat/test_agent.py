"""A bare model as an agent, whole trials: modes, limits, accounts, and what its endpoint may do to it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from arena.agents.chat import agent
from arena.reports.groups import groups
from arena.reports.rows import trial_rows
from arena.results.session import Ending, EventKind, Tokens
from arena.results.verdict import Status
from arena.runs.records import read_run
from arena.runs.service.judge_pool import JudgePool
from tests.agents.chat.standin import Connection, Step, chunk, endpoint, fails, hangs, raw, resets, says, together
from tests.agents.chat.trials import KEY, SPEEDS, coded, kernel, tried
from tests.fakes import Timing


def test_one_call_hands_in_the_kernel_of_its_answer(tmp_path: Path) -> None:
    with endpoint(says(coded("fast"), reasoning="Think it over.", usage=(1000, 200, 300))) as server:
        done = tried(tmp_path, server, "temperature: 0.5\nmax_tokens: 4096\noptions: {top_k: 7}\n")
    assert done.trial.status is Status.PASSED and done.submitted == kernel("fast")
    session = done.session
    assert (session.ending, session.detail, session.model) == (Ending.FINISHED, "", "stand-in-1")
    assert session.tokens == Tokens(1000, 200, 300) and session.version.startswith("openai 3.")
    assert [(one.number, one.speedup) for one in session.evaluations] == [(1, 2.0)]
    (request,) = server.requests
    sent = {name: request[name] for name in ("model", "temperature", "max_tokens", "top_k", "stream")}
    assert sent == {"model": "asked-for", "temperature": 0.5, "max_tokens": 4096, "top_k": 7, "stream": True}
    assert server.keys == [f"Bearer {KEY}"]
    kinds = [event.kind for event in done.events]
    assert kinds[2:] == [EventKind.REASONING, EventKind.MESSAGE, EventKind.EVALUATION, EventKind.NOTE]


def test_the_prompt_holds_text_kernel_reference_and_seen_cases_alone(tmp_path: Path) -> None:
    with endpoint(says(coded("fast"))) as server:
        tried(tmp_path, server)
    prompt = server.last_message
    for part in ("# scale", "def scale(x, bias, alpha, flag, y): ...", "return x * alpha", "omit: [bias]"):
        assert part in prompt
    assert "note: large" not in prompt and "structure" not in prompt and "You have one answer" in prompt


def test_best_of_n_asks_side_by_side_and_states_pass_at_k(tmp_path: Path) -> None:
    words = ("slow", "WRONG", "faster", "fast")
    with endpoint(*together(*(says(coded(word)) for word in words))) as server:
        done = tried(tmp_path, server, "samples: 4\nparallel: 4\n")
    assert done.submitted == kernel("faster") and len(server.requests) == 4
    assert done.session.tokens == Tokens(400, 80)
    assert done.session.detail == "3 of 4 samples correct on the seen cases: pass@1 0.75, pass@2 1, pass@4 1"
    assert sorted(one.number for one in done.session.evaluations) == [1, 2, 3, 4]
    assert all(f"evaluation {number} is of sample" in done.notes for number in (1, 2, 3, 4))


def test_no_more_requests_at_once_than_it_says(tmp_path: Path) -> None:
    asked: list[int] = []

    def counting(connection: Connection) -> None:
        asked.append(1)
        time.sleep(0.05)
        most.append(len(asked))
        says(coded("fast"))(connection)
        asked.pop()

    most: list[int] = []
    with endpoint(counting) as server:
        tried(tmp_path, server, "samples: 6\nparallel: 2\n")
    assert len(most) == 6 and max(most) == 2


def test_refinement_gets_feedback_and_the_best_kernel_counts(tmp_path: Path) -> None:
    with endpoint(*(says(coded(word)) for word in ("WRONG", "faster", "slow"))) as server:
        done = tried(tmp_path, server, "turns: 3\n")
    assert done.submitted == kernel("faster")
    assert [one.status for one in done.session.evaluations] == [Status.WRONG_RESULT, Status.PASSED, Status.PASSED]
    first, second = (server.requests[index]["messages"][-1]["content"] for index in (1, 2))
    assert "wrong_result in correctness: so it is" in first and "You have 2 answers left" in first
    assert "right first, then fast" in first and "faster, and still right" in second
    assert "4x over the baseline" in second and "You have 1 answer left" in second
    assert [one["role"] for one in server.requests[2]["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert server.requests[2]["messages"][1]["content"] == coded("WRONG")


def test_samples_and_refinement_together(tmp_path: Path) -> None:
    with endpoint(says(coded("slow"))) as server:
        done = tried(tmp_path, server, "samples: 2\nturns: 3\n")
    assert len(server.requests) == 6 == len(done.session.evaluations)
    assert sorted(len(request["messages"]) for request in server.requests) == [1, 1, 3, 3, 5, 5]
    assert done.session.detail.startswith("2 of 2 samples correct")


def test_of_kernels_that_all_fail_the_last_is_judged(tmp_path: Path) -> None:
    with endpoint(says(coded("WRONG"))) as server:
        done = tried(tmp_path, server)
    assert done.trial.status is Status.WRONG_RESULT and done.submitted == kernel("WRONG")


def test_an_answer_without_code_is_said_back_to_the_model(tmp_path: Path) -> None:
    with endpoint(says("I would tile it."), says(coded("fast"))) as server:
        done = tried(tmp_path, server, "turns: 2\n")
    assert "there is no complete fenced code block" in server.last_message
    assert done.submitted == kernel("fast") and len(done.session.evaluations) == 1


def test_a_header_that_an_answer_names_is_the_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "long_headers", lambda files: {"headers/matrix.h": "the text of it"})
    with endpoint(says("Show me `headers/matrix.h`."), says(coded("fast"))) as server:
        done = tried(tmp_path, server, "turns: 2\n")
    assert "the text of it" in server.last_message and "there is no complete" not in server.last_message
    assert done.submitted == kernel("fast") and len(done.session.evaluations) == 1


def test_without_any_code_nothing_is_submitted(tmp_path: Path) -> None:
    with endpoint(says("I cannot.")) as server:
        done = tried(tmp_path, server)
    assert done.trial.status is Status.NOTHING_SUBMITTED and done.session.ending is Ending.FINISHED


def test_an_answer_cut_off_is_not_evaluated(tmp_path: Path) -> None:
    half = coded("fast").split("    pass")[0]
    with endpoint(says(half, finish="length"), says(coded("fast"))) as server:
        done = tried(tmp_path, server, "turns: 2\nmax_tokens: 99\n")
    assert "cut off at the limit on its length (99 tokens)" in server.last_message
    assert len(done.session.evaluations) == 1 and done.submitted == kernel("fast")


def test_cost_comes_from_the_price(tmp_path: Path) -> None:
    with endpoint(says(coded("fast"), usage=(1_000_000, 100_000, 500_000))) as server:
        done = tried(tmp_path, server, "price: {input: 2, output: 10, cached: 0.5}\n")
    assert done.session.cost_usd == pytest.approx(0.5 * 2 + 0.5 * 0.5 + 0.1 * 10)


@pytest.mark.parametrize(
    ("limits", "ending"),
    [({"tokens": 250}, Ending.TOKENS), ({"cost_usd": 0.0008}, Ending.COST)],
    ids=["tokens", "cost"],
)
def test_a_limit_on_tokens_or_cost_ends_the_session(tmp_path: Path, limits: dict[str, float], ending: Ending) -> None:
    """The third answer reaches either limit: each has 120 tokens and costs 0.0003 dollars."""
    with endpoint(says(coded("fast"))) as server:
        done = tried(tmp_path, server, "turns: 50\nprice: {input: 1, output: 10}\n", limits)
    assert done.session.ending is ending and done.submitted == kernel("fast")
    assert 3 <= len(server.requests) < 50 and "ended by the harness" in done.notes


def test_an_endpoint_that_hangs_is_left_when_the_time_is_up(tmp_path: Path) -> None:
    begun = time.monotonic()
    with endpoint(says(coded("fast")), hangs) as server:
        done = tried(tmp_path, server, "turns: 2\n", {"wall_clock_s": 1.0})
        assert time.monotonic() - begun < 60
    assert done.session.ending is Ending.WALL_CLOCK and done.submitted == kernel("fast")


def test_no_piece_for_too_long_counts_as_a_lost_connection(tmp_path: Path) -> None:
    begun = time.monotonic()
    with endpoint(hangs, says(coded("fast"))) as server:
        done = tried(tmp_path, server, "silence_s: 0.3\n")
        assert time.monotonic() - begun < 60
    assert done.submitted == kernel("fast") and "the answer broke off" in done.notes


def test_evaluations_that_are_used_up_end_a_conversation(tmp_path: Path) -> None:
    with endpoint(says(coded("fast"))) as server:
        done = tried(tmp_path, server, "turns: 5\n", {"evaluations": 2})
    assert len(server.requests) == 2 and "all evaluations are used up" in done.notes
    assert done.session.ending is Ending.FINISHED


def test_without_evaluations_a_model_is_asked_all_the_same(tmp_path: Path) -> None:
    with endpoint(says(coded("fast"))) as server:
        done = tried(tmp_path, server, "turns: 5\n", {"evaluations": 0})
    assert done.submitted == kernel("fast") and not done.session.evaluations and len(server.requests) == 1


@pytest.mark.slow(but=["503", "reset", "truncated"])
@pytest.mark.parametrize(
    "fault",
    [
        fails(429, "slow down", Retry_After="0.1"),
        fails(503, retry_after_ms="50"),
        resets,
        raw('data: {"choices": [{"delta": {"conte'),
        raw("<html>It works!</html>", "text/html"),
        raw("data: [1, 2]\n\ndata: 7\n\n"),
        raw(f"data: {json.dumps(chunk(None))}\n\ndata: [DONE]\n\n"),
        raw(f"data: {json.dumps(chunk({'content': 'Well,'}))}\n\n"),
        raw('data: {"error": {"message": "overloaded"}}\n\n'),
    ],
    ids=["429", "503", "reset", "truncated", "html", "no objects", "empty", "early end", "error event"],
)
def test_a_fault_of_the_endpoint_is_tried_again(tmp_path: Path, fault: Step) -> None:
    with endpoint(fault, says(coded("fast"))) as server:
        done = tried(tmp_path, server)
    assert done.submitted == kernel("fast") and len(server.requests) == 2
    assert done.session.ending is Ending.FINISHED


def test_it_waits_as_long_as_a_rate_limit_says(tmp_path: Path) -> None:
    times: list[float] = []

    def limited(connection: Connection) -> None:
        times.append(time.monotonic())
        fails(429, "slow down", Retry_After="1.5")(connection)

    def answering(connection: Connection) -> None:
        times.append(time.monotonic())
        says(coded("fast"))(connection)

    with endpoint(limited, answering) as server:
        done = tried(tmp_path, server)
    assert times[1] - times[0] >= 1.5 and "the endpoint answered 429" in done.notes


@pytest.mark.parametrize(
    "fault", [fails(401, "no such key"), fails(404), raw("nonsense")], ids=["401", "404", "rubbish"]
)
def test_an_endpoint_that_never_answers_is_a_failure_of_the_harness(tmp_path: Path, fault: Step) -> None:
    with endpoint(fault) as server:
        done = tried(tmp_path, server, "samples: 2\nretries: 0\n")
    assert done.trial.status is Status.HARNESS_ERROR and done.trial.session is None
    assert "agent mine did not get going: the endpoint failed: 2 of 2 samples" in done.trial.detail


def test_an_endpoint_that_fails_later_leaves_what_was_reached(tmp_path: Path) -> None:
    with endpoint(says(coded("fast")), fails(400, "context too long")) as server:
        done = tried(tmp_path, server, "turns: 3\n")
    assert done.session.ending is Ending.FAILED and "context too long" in done.session.detail
    assert done.submitted == kernel("fast") and done.trial.status is Status.PASSED


def test_pass_at_k_is_withheld_where_a_sample_was_lost(tmp_path: Path) -> None:
    with endpoint(*together(says(coded("fast")), fails(400))) as server:
        done = tried(tmp_path, server, "samples: 2\n")
    assert done.session.ending is Ending.FAILED and "pass@" not in done.session.detail
    assert "1 of 2 samples" in done.session.detail


def test_pass_at_k_is_withheld_where_an_answer_was_not_evaluated(tmp_path: Path) -> None:
    with endpoint(*together(*[says(coded("fast"))] * 4)) as server:
        done = tried(tmp_path, server, "samples: 4\n", {"evaluations": 2})
    assert len(server.requests) == 4 and len(done.session.evaluations) == 2 and done.session.refused == 2
    assert done.session.detail == "2 of 4 samples correct on the seen cases; no pass@k, since some were not completed"


def test_pass_at_k_is_withheld_where_evaluations_ran_out(tmp_path: Path) -> None:
    with endpoint(says(coded("fast"))) as server:
        done = tried(tmp_path, server, "samples: 2\nturns: 3\n", {"evaluations": 3})
    assert done.session.detail.endswith("correct on the seen cases; no pass@k, since some were not completed")


def test_no_usage_means_no_tokens_and_is_said(tmp_path: Path) -> None:
    with endpoint(says(coded("fast"), usage=None)) as server:
        done = tried(tmp_path, server, "turns: 2\n", {"tokens": 10})
    assert done.session.tokens.total == 0 and done.session.ending is Ending.FINISHED
    assert done.notes.count("the endpoint reports no tokens") == 1


def test_a_conversation_goes_on_without_thoughts_and_without_empty_messages(tmp_path: Path) -> None:
    steps = (says("<think>Hm.</think>Later."), says("<think>Hm.", finish="length"), says(""), says(coded("fast")))
    with endpoint(*steps) as server:
        done = tried(tmp_path, server, "turns: 4\n")
    said = [one["content"] for one in server.requests[-1]["messages"] if one["role"] == "assistant"]
    assert said == ["Later.", "(no answer)", "(no answer)"] and done.submitted == kernel("fast")


def test_thoughts_in_the_answer_are_no_code(tmp_path: Path) -> None:
    answer = f"<think>First:\n```python\n{kernel('WRONG')}```\n</think>\n{coded('fast')}"
    with endpoint(says(answer)) as server:
        done = tried(tmp_path, server)
    assert done.submitted == kernel("fast")


def test_attempts_of_single_calls_fill_the_report(tmp_path: Path) -> None:
    """Four attempts, two of them correct: the report's pass@k is that of single answers."""
    words = ("WRONG", "fast", "WRONG", "slow")
    with endpoint(*(says(coded(word)) for word in words)) as server:
        done = tried(tmp_path, server, attempts=4)
    measured = groups(trial_rows([read_run(done.folder)]))[0].mean
    values = {name: one.value for name in ("pass_at_1", "pass_at_2", "pass_at_4") if (one := measured[name])}
    assert values == pytest.approx({"pass_at_1": 1 / 2, "pass_at_2": 5 / 6, "pass_at_4": 1.0})


def test_a_run_that_is_given_up_leaves_a_hanging_endpoint(tmp_path: Path) -> None:
    pool = JudgePool([Timing(speeds=SPEEDS)])

    def cancelling(connection: Connection) -> None:
        pool.cancel()
        hangs(connection)

    begun = time.monotonic()
    with endpoint(cancelling) as server:
        done = tried(tmp_path, server, judges=pool)
        assert time.monotonic() - begun < 60
    assert done.trial.status is Status.HARNESS_ERROR and "the run was given up" in done.trial.detail


def test_an_answer_without_end_is_cut_and_counts_as_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.agents.chat.endpoint.MOST_CHARACTERS", 10_000)

    def floods(connection: Connection) -> None:
        connection.begin()
        while True:
            connection.send(chunk({"content": "and so on " * 100}))

    with endpoint(floods, says(coded("fast"))) as server:
        done = tried(tmp_path, server)
    assert done.submitted == kernel("fast") and "more than 10000 characters" in done.notes
