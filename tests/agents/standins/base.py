"""What all stand-ins share: the script, the server, and the record of the requests.

A stand-in has no memory of a conversation. Which turn of the script comes next is read from the request itself,
so one stand-in serves many conversations at once, and a request that is sent again gets the same answer.
"""

from __future__ import annotations

import itertools
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool that the model calls."""

    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True)
class Turn:
    """What the model answers once. Without calls the agent is done."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    input_tokens: int = 100
    """all of the input, `cached_tokens` included"""
    output_tokens: int = 20
    cached_tokens: int = 40


@dataclass(frozen=True)
class Fault:
    """The provider refuses."""

    status: int
    kind: str
    """the provider's word, such as `authentication_error`"""
    message: str


@dataclass(frozen=True)
class Seen:
    """What a request shows to the model."""

    turn: int
    """how many turns of this conversation the model has had"""
    prompt: str
    """the texts of the first user messages, in one"""
    tools: Mapping[str, Json]
    """the JSON schema of each tool's arguments, by name"""
    results: tuple[str, ...]
    """what the tools answered to the turn before"""


Step = Turn | Fault | Callable[[Seen], "Turn | Fault"]
Script = Sequence[Step] | Callable[[Seen], Turn | Fault]
"""Turns in their order (the last one again when they are used up), or what decides alone."""


def play(script: Script, seen: Seen) -> Turn | Fault:
    """The script's turn for a request."""
    step: Step = script if callable(script) else script[min(seen.turn, len(script) - 1)]
    return step(seen) if callable(step) else step


def call_id(prefix: str, turn: int, index: int) -> str:
    """A name for a tool call from which `turn_of` reads the turn."""
    return f"{prefix}_{turn:04d}x{index:02d}"


def turn_of(identifier: str) -> int:
    """The turn in which a call was made."""
    return int(identifier.rpartition("_")[2].partition("x")[0])


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    """by lower-case name"""
    body: Json


@dataclass(frozen=True)
class Reply:
    """One answer; the parts are sent one by one."""

    parts: Iterable[bytes]
    status: int = 200
    content_type: str = "application/json"


def as_json(content: object, status: int = 200) -> Reply:
    """An answer in one piece."""
    return Reply([json.dumps(content).encode()], status)


def as_events(events: Iterable[tuple[str, Json]]) -> Reply:
    """Server-sent events: a name (none if empty) and its data each."""

    def frames() -> Iterator[bytes]:
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            yield f"{head}data: {json.dumps(data)}\n\n".encode()

    return Reply(frames(), content_type="text/event-stream")


def pieces(text: str, size: int = 40) -> list[str]:
    """A text in the pieces in which a provider streams it; at least one, however empty."""
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


_ASIDE = "Kernel work"
"""what answers a program that asks for itself, such as for a title of the conversation"""


@dataclass
class StandIn(ABC):
    """A server on the loopback address that speaks one provider's protocol; a context manager."""

    script: Script
    requests: list[Request] = field(default_factory=list)
    """everything that was asked, in the order of arrival"""
    numbers: Iterator[int] = field(default_factory=itertools.count)
    """for the names of replies"""

    @abstractmethod
    def answer(self, request: Request) -> Reply:
        """What the provider would answer."""

    def step(self, seen: Seen | None, aside: str = _ASIDE) -> tuple[Turn | Fault, int]:
        """The script's turn and its number. `seen`: None for requests without tools, which get a few words."""
        if seen is None:
            return Turn(aside, input_tokens=10, output_tokens=2, cached_tokens=0), 0
        return play(self.script, seen), seen.turn

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def endpoint(self) -> str:
        """`host:port`."""
        return self.url.removeprefix("http://")

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stand_in = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, request: Request) -> Reply:
        """Note a request and answer it."""
        with self._lock:
            self.requests.append(request)
        return self.answer(request)

    def asked(self, path: str) -> list[Request]:
        """The requests to one path, without its query."""
        with self._lock:
            return [request for request in self.requests if request.path.partition("?")[0] == path]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    stand_in: StandIn


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {"unreadable": raw.decode(errors="replace")}
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.stand_in.take(Request(self.command, self.path, headers, body))
        self.send_response(reply.status)
        self.send_header("content-type", reply.content_type)
        self.send_header("connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for part in reply.parts:
                self.wfile.write(part)
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            return  # the agent was ended in the middle of an answer

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: `requests` holds more."""
