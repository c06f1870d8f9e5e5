"""An endpoint of chat completions on the loopback address that does what a script says, one step a request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.agents.loopback import Quiet, serving

PIECE = 40
MODEL = "stand-in-1"


class Connection(Quiet):
    """One connection, as a step sees it."""

    endpoint: Endpoint

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self.endpoint.next_step(self)(self)
        except (BrokenPipeError, ConnectionResetError):
            return

    def begin(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        """Send status and headers; the body ends with the connection."""
        self.send_response(status)
        for name, text in {"Content-Type": kind, "Connection": "close", **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()

    def send(self, data: object) -> None:
        """Send one event."""
        self.wfile.write(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
        self.wfile.flush()


Step = Callable[[Connection], None]


@dataclass
class Endpoint:
    """Steps in order, the last one again and again; and what was asked."""

    steps: Sequence[Step]
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def next_step(self, connection: Connection) -> Step:
        with self.lock:
            self.requests.append(connection.body)
            self.headers.append({name.lower(): text for name, text in connection.headers.items()})
            self.keys.append(connection.headers.get("Authorization", ""))
            return self.steps[min(len(self.requests), len(self.steps)) - 1]

    @property
    def last_message(self) -> str:
        """The last message of the last request."""
        return str(self.requests[-1]["messages"][-1]["content"])


@contextmanager
def endpoint(*steps: Step) -> Iterator[Endpoint]:
    """Serve these steps."""
    made = Endpoint(steps)
    with serving(type("Bound", (Connection,), {"endpoint": made})) as port:
        made.url = f"http://127.0.0.1:{port}/v1"
        try:
            yield made
        finally:
            made.closing.set()


def chunk(delta: dict[str, object] | None, finish: str | None = None) -> dict[str, object]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}


def says(
    text: str, *, reasoning: str = "", finish: str = "stop", usage: tuple[int, int, int] | None = (100, 20, 0)
) -> Step:
    """A whole answer in pieces; `usage`: tokens in, out and cached, or no such report."""

    def step(connection: Connection) -> None:
        connection.begin()
        for at in range(0, len(reasoning), PIECE):
            connection.send(chunk({"reasoning_content": reasoning[at : at + PIECE]}))
        for at in range(0, len(text), PIECE):
            connection.send(chunk({"content": text[at : at + PIECE]}))
        connection.send(chunk({}, finish))
        if usage is not None:
            tokens = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage[:2])}
            connection.send({**chunk(None), "usage": {**tokens, "prompt_tokens_details": {"cached_tokens": usage[2]}}})
        connection.send("[DONE]")

    return step


def fails(status: int, message: str = "no", **headers: str) -> Step:
    """An error of the server, as JSON."""

    def step(connection: Connection) -> None:
        connection.begin(status, "application/json", **headers)
        connection.wfile.write(json.dumps({"error": {"message": message}}).encode())

    return step


def raw(text: str, kind: str = "text/event-stream") -> Step:
    """Status 200, these bytes, and the connection's end."""

    def step(connection: Connection) -> None:
        connection.begin(200, kind)
        connection.wfile.write(text.encode())

    return step


def hangs(connection: Connection) -> None:
    """Half an answer, then nothing until the test has ended."""
    connection.begin()
    connection.send(chunk({"content": "Well, "}))
    connection.endpoint.closing.wait(30)


def resets(connection: Connection) -> None:
    """No answer at all."""
    connection.close_connection = True


def together(*steps: Step) -> list[Step]:
    """The steps, of which none begins before all are asked for."""
    barrier = threading.Barrier(len(steps))

    def waiting(step: Step) -> Step:
        def wait(connection: Connection) -> None:
            barrier.wait(10)
            step(connection)

        return wait

    return [waiting(step) for step in steps]
