"""Tasks as folders of the Harbor framework (schema 1.4), for `arena export harbor`. docs/evaluate/frameworks.md.

A folder is a thin client of `arena serve`: the agent's container and the verifier's hold Python's standard library and
ask the judge over HTTP. Nothing here imports Harbor. What is asked for stands here, without the exporter's imports.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arena.results.session import Limits


class Layout(StrEnum):
    """The place of the judge of an exported task."""

    URL = "url"
    """a running `arena serve`, at $ARENA_URL"""
    SIDECAR = "sidecar"
    """a service beside the agent's container, in its compose file"""


@dataclass(frozen=True)
class HarborSettings:
    """The requests and limits of an exported folder.

    `limits`: those of the server; `platform`: of the sidecar's judge; `image`: of the agent's container, with python3;
    `gpus`: of the agent's container, which the judge does not use.
    """

    layout: Layout
    limits: Limits
    platform: str
    image: str
    gpus: int
