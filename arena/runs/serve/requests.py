"""Requests that a client of the server makes; unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from arena.results.effort import Effort

MOST_BATCH = 64
AgentName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class BeginRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /episodes. `seed` names the episode, and nothing else: inputs come from the judge's secret."""

    task: str
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] | None = None
    effort: Effort | None = None
    agent: AgentName = "client"


class StepRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /episodes/EPISODE/evaluate."""

    kernel: str
    profile: bool = False


class FinishRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /episodes/EPISODE/finish, which may be left out."""

    kernel: str | None = None


class BatchItem(msgspec.Struct, forbid_unknown_fields=True):
    """One kernel of a batch."""

    episode: str
    kernel: str


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /batch."""

    items: Annotated[list[BatchItem], msgspec.Meta(max_length=MOST_BATCH)]


class BatchAnswer(msgspec.Struct):
    """Answer for one item: what `evaluate` answers, or its error."""

    status: int
    answer: Any
