"""The key of an endpoint is in nothing that is kept, whatever the endpoint does with it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from arena.results.verdict import Status
from tests.agents.chat.standin import Connection, Step, chunk, endpoint, fails, raw, says
from tests.agents.chat.trials import KEY, Tried, coded, tried

ENCODED = base64.b64encode(KEY.encode()).decode()


def kept(done: Tried) -> str:
    """Every byte of the run folder, names of files included."""
    files = [path for path in done.folder.rglob("*") if path.is_file()]
    return "\n".join(f"{path} {path.read_bytes().decode('utf-8', 'replace')}" for path in files)


def says_as(model: str) -> Step:
    """An answer of a model that calls itself so."""

    def step(connection: Connection) -> None:
        connection.begin()
        connection.send({**chunk({"content": coded("fast")}, "stop"), "model": model})

    return step


def fails_because(reason: str) -> Step:
    def step(connection: Connection) -> None:
        connection.send_response(503, reason)
        connection.send_header("Retry-After", "0.1")
        connection.send_header("Content-Length", "0")
        connection.end_headers()

    return step


@pytest.mark.parametrize(
    "steps",
    [
        [says(f"Your key is {KEY}.\n{coded('fast')}")],
        [says(coded("fast"), reasoning=f"The key {KEY} and {ENCODED} and {KEY[::-1]}.")],
        [says(coded(f"{KEY} {ENCODED} fast"))],
        [says_as(KEY)],
        [fails_because(f"No {KEY}"), says(coded("fast"))],
        [raw(f"data: {json.dumps({'error': {'message': f'key {KEY}'}})}\n\n"), says(coded("fast"))],
        [raw(f"data: {{{KEY}\n\n"), says(coded("fast"))],
        [says(coded("fast")), fails(400, f"{'x' * 460} {KEY}")],
    ],
    ids=["message", "reasoning", "kernel", "model", "phrase", "error event", "rubbish", "cut in two"],
)
def test_the_key_is_in_no_file(tmp_path: Path, steps: list[Step]) -> None:
    with endpoint(*steps) as server:
        done = tried(tmp_path, server, f"turns: {2 if steps[0] is not steps[-1] else 1}\n")
    assert server.keys[0] == f"Bearer {KEY}" and done.trial.status is Status.PASSED
    everything = kept(done)
    assert KEY not in everything and KEY[:16] not in everything and ENCODED[:-4] not in everything
    assert KEY[::-1] not in everything


def test_the_key_is_in_no_error(tmp_path: Path) -> None:
    with endpoint(fails(401, f"Incorrect API key provided: {KEY}")) as server:
        done = tried(tmp_path, server)
    assert done.trial.status is Status.HARNESS_ERROR and "[TEST_MODEL_KEY]" in done.trial.detail
    assert KEY not in kept(done) and KEY not in done.trial.detail


def test_headers_from_the_environment_are_secrets_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: gateway-secret-1234567")
    with endpoint(says(f"gateway-secret-1234567\n{coded('fast')}")) as server:
        done = tried(tmp_path, server)
    assert server.headers[0]["x-gateway"] == "gateway-secret-1234567" and "gateway-secret" not in kept(done)


def test_no_other_credential_of_the_environment_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")
    for name in names:
        monkeypatch.setenv(name, f"ambient-{name}")
    with endpoint(says(coded("fast"))) as server:
        tried(tmp_path, server)
    assert server.keys == [f"Bearer {KEY}"] and "ambient" not in json.dumps(server.headers)


def test_another_key_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search above finds what is not taken out."""
    monkeypatch.setenv("TEST_MODEL_KEY", "another-key-altogether")
    with endpoint(says(f"Your key is {KEY}.\n{coded('fast')}")) as server:
        assert KEY in kept(tried(tmp_path, server))
