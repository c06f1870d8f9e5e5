"""The clients of `arena serve`: their tokens, which episodes are theirs, and how much each of them may use."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from arena.errors import UsageError
from arena.runs.serve.requests import MOST_BATCH

LOCAL = "local"
"""the one client of a server without a file of clients"""
_OTHERS = 0o077
_TOKEN_BYTES = 24
_Count = Annotated[int, Meta(ge=1, le=2**53)]
_Token = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._~+/=-]{16,200}\Z")]


class ClientAccount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One client, as the file of `--clients` has it. A limit that is null is none.

    Attributes:
        name: with which the names of its agents begin in records.
        token: opens every route for it.
        agent_token: for agents that call the server themselves; opens everything but `finish`.
        episodes: how many it may begin in all.
        agent_episodes: how many of them the holders of `agent_token` may begin.
        evaluations: of all its episodes, final verdicts among them.
        kernel_bytes: of evaluated kernels, which are kept.
        requests: that it may make at the same time.
        places: its evaluations that are judged or wait for a judge at the same time.
    """

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}\Z")]
    token: _Token
    agent_token: _Token | None = None
    episodes: _Count | None = None
    agent_episodes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    evaluations: _Count | None = None
    kernel_bytes: _Count | None = None
    requests: _Count = 64
    places: _Count = 32


class Usage(msgspec.Struct):
    """The use that a client has made of its limits; part of the answer to GET /status."""

    client: str
    episodes: int
    evaluations: int
    kernel_bytes: int
    requests: int
    places: int
    limits: dict[str, int | None]


@dataclass(frozen=True)
class Caller:
    """The client that makes a request, or its agent."""

    client: ClientAccount
    is_agent: bool = False


class OverLimit(Exception):
    """A client has used up something for good. The message says what."""


class TooMany(Exception):
    """A client does as much at once as it may. The message says of what."""


@dataclass
class Clients:
    """Every client of a server, with what it uses. Thread-safe."""

    known: Sequence[ClientAccount]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _used: Counter[tuple[str, str]] = field(default_factory=Counter)

    @cached_property
    def callers(self) -> Mapping[str, Caller]:
        """Return the caller of each token."""
        found = {client.token: Caller(client) for client in self.known}
        found.update({client.agent_token: Caller(client, True) for client in self.known if client.agent_token})
        return found

    def count(self, name: str, **numbers: int) -> None:
        """Count what a client used before a restart."""
        with self._lock:
            for kind, number in numbers.items():
                self._used[name, kind] += number

    def spend(self, client: ClientAccount, **numbers: int) -> None:
        """Count what a client is about to use. Raises `OverLimit`, and then counts nothing."""
        with self._lock:
            for kind, number in numbers.items():
                used, limit = self._used[client.name, kind], getattr(client, kind)
                if limit is not None and used + number > limit:
                    raise OverLimit(f"{client.name} has used {used} of {limit} {kind}, and this needs {number}")
            for kind, number in numbers.items():
                self._used[client.name, kind] += number

    @contextmanager
    def spent(self, client: ClientAccount, **numbers: int) -> Iterator[None]:
        """Count what a client uses, unless it comes to nothing: an exception gives it back. Raises `OverLimit`."""
        self.spend(client, **numbers)
        try:
            yield
        except BaseException:
            self.spend(client, **{kind: -number for kind, number in numbers.items()})
            raise

    @contextmanager
    def held(self, client: ClientAccount, kind: str) -> Iterator[None]:
        """Count one of `requests` or `places` while this lasts. Raises `TooMany`."""
        limit = getattr(client, kind)
        with self._lock:
            if self._used[client.name, kind] >= limit:
                raise TooMany(f"{client.name} has {limit} {kind} at once, as many as it may")
            self._used[client.name, kind] += 1
        try:
            yield
        finally:
            with self._lock:
                self._used[client.name, kind] -= 1

    def is_busy(self, token: str) -> bool:
        """Return whether the holder of a token makes as many requests at once as it may."""
        caller = self.callers.get(token)
        if caller is None:
            return False
        with self._lock:
            return self._used[caller.client.name, "requests"] >= caller.client.requests

    def usage(self, client: ClientAccount) -> Usage:
        """Return what a client has used, and its limits."""
        kinds = ("episodes", "evaluations", "kernel_bytes", "requests", "places")
        with self._lock:
            used = [self._used[client.name, kind] for kind in kinds]
        limits = {kind: getattr(client, kind) for kind in (*kinds, "agent_episodes")}
        return Usage(client=client.name, limits=limits, **dict(zip(kinds, used, strict=True)))


def local(capacity: int, token: str = "", agent_token: str = "", agent_episodes: int = 0) -> ClientAccount:
    """Return the one client of a server without a file of clients, which may use all of its capacity.

    Tokens that are empty are made up.
    """
    return ClientAccount(
        LOCAL,
        token or secrets.token_urlsafe(_TOKEN_BYTES),
        agent_token or secrets.token_urlsafe(_TOKEN_BYTES),
        agent_episodes=agent_episodes,
        requests=capacity + MOST_BATCH,
        places=capacity,
    )


def read_clients(path: Path) -> tuple[ClientAccount, ...]:
    """Read a file of clients: YAML, a list below `clients`, for its owner's eyes only. Raises `UsageError`."""
    try:
        if path.stat().st_mode & _OTHERS:
            raise UsageError(f"{path}: others may read its tokens; chmod 600 {path}")
        found = msgspec.yaml.decode(path.read_bytes(), type=dict[str, list[ClientAccount]])
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}") from None
    except msgspec.MsgspecError as problem:
        raise UsageError(f"{path}: {problem}; expected `clients:`, a list of `name`, `token` and limits") from None
    clients = tuple(found.get("clients", ()))
    if not clients or len(found) != 1:
        raise UsageError(f"{path}: expected `clients:` alone, a list of at least one")
    if any(client.name == LOCAL for client in clients):
        raise UsageError(f"{path}: {LOCAL} is the client of servers without a file; name it otherwise")
    _require_distinct(path, "name", [client.name for client in clients])
    _require_distinct(path, "token", [token for one in clients for token in (one.token, one.agent_token) if token])
    return clients


def _require_distinct(path: Path, what: str, values: Sequence[str]) -> None:
    twice = [number for number, value in enumerate(values) if value in values[:number]]
    if twice:
        shown = "" if what == "token" else f": {values[twice[0]]}"
        raise UsageError(f"{path}: a {what} occurs twice{shown}")


def recorded_name(client: ClientAccount, agent: str) -> str:
    """Return an agent's name in records: no client writes beside the trials of another one's agents."""
    return agent if client.name == LOCAL else f"{client.name}.{agent}"
