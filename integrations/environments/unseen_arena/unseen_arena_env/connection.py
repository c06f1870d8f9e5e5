"""Address of the server, and the state of a rollout; used by the taskset and by the tools."""

from __future__ import annotations

import os
from typing import Any

import verifiers.v1 as vf


class ArenaState(vf.State):
    """State of a rollout."""

    episode: str = ""
    final: dict[str, Any] | None = None
    """the verdict once there is one: `Final` of `arena serve` as JSON"""
    failure: str = ""
    """of the server or the judge at the last call of a tool; empty where it answered"""


def server() -> tuple[str, str]:
    """Return address and token from the environment. Raises `ValueError` where there is no address."""
    address = os.environ.get("ARENA_URL", "")
    if not address:
        raise ValueError("ARENA_URL is not set: give the address that `arena serve` prints, and ARENA_TOKEN")
    return address, os.environ.get("ARENA_TOKEN", "")
