"""The box around a coding agent: what it sees, what it may write, whom it reaches, and how it is stopped.

A box shows an agent its workspace, an empty home and the system, and nothing of the project. `open_box` takes
bubblewrap where it works and `arena.agents.box.fallback` where it does not; what is in force is `Box.isolation`, which
belongs into every record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from arena.agents.base import Pausable
from arena.agents.box.confined import read_candidate

__all__ = ["PYTHONS", "Box", "BoxPlan", "Boxed", "open_box", "probe", "read_candidate"]


PYTHONS = ("python3", "python")
"""programs that every box has: the harness' Python, with PyTorch and Triton"""


@dataclass(frozen=True, kw_only=True)
class BoxPlan:
    """What a box shows and allows. Folders are those of this machine."""

    workspace: Path
    """writable; the folder in which the agent works"""
    home: Path
    """writable; its home folder"""
    tools: Path
    """read-only inside; sockets in it can be connected to"""
    environment: Mapping[str, str] = field(default_factory=dict)
    """the whole environment of the agent; the box sets HOME, PATH, TMPDIR, ARENA_TOOLS and what leads to the proxy"""
    network: tuple[str, ...] = ()
    """`host:port` that it may reach, nothing else; loopback addresses too: `127.0.0.1:8123` is this machine's"""
    device: bool = False
    """whether the device files of GPUs are there"""
    show: tuple[Path, ...] = ()
    """further folders to show read-only: where a program is installed, toolchains"""
    hide: tuple[Path, ...] = ()
    """folders never shown even where a shown one holds them; of two nested ones the deeper decides"""
    disk_bytes: int = 2 << 30
    """what the caller allows in workspace and home; a box bounds with it what it keeps in memory (/tmp)"""
    file_bytes: int = 1 << 30
    """the most bytes of one file"""
    processes: int = 4096
    """the most processes and threads at a time, where a limit can be had"""


class Boxed(Pausable, Protocol):
    """A command that runs in a box, with everything that it has started."""

    stdout: IO[bytes]
    stderr: IO[bytes]

    def poll(self) -> int | None:
        """The command's exit code, or None while it runs; ended by a signal it is 128 + its number, or its negative."""

    def disk_used(self) -> int:
        """Bytes in workspace and home, deleted files that are still open included."""

    def kill(self) -> None:
        """End the command and every descendant, also daemons (`setsid`, double fork); returns when none is left."""


class Box(Protocol):
    """An open box. A context manager: closing it kills everything in it and ends its proxy."""

    isolation: str
    """the level in force, such as `bubblewrap+network=none`"""
    workspace: str
    """the workspace's path as the agent sees it; `home` and `tools` likewise"""
    home: str
    tools: str

    @property
    def refused(self) -> Mapping[str, int]:
        """How often the agent tried to reach what it may not, by `host:port`, through the proxy."""

    def start(self, command: Sequence[str], stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> Boxed:
        """Start a command in the workspace; `environment` joins that of the plan and wins over it.

        The thread that starts it must outlive it: its end is the command's end. Raises `FileNotFoundError` where the
        program is not to be found inside, `InfrastructureError` where the box cannot be opened.
        """

    def __enter__(self) -> Box: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_box(plan: BoxPlan) -> Box:
    """A box for one agent: bubblewrap where it works, else the weaker fallback."""
    from arena.agents.box import bubblewrap, fallback

    features = bubblewrap.features()
    if features.works:
        return bubblewrap.BubblewrapBox(plan, features)
    return fallback.FallbackBox(plan)


def probe() -> str:
    """One sentence for `arena doctor`: which box can be had here, and why not a better one."""
    from arena.agents.box import bubblewrap, fallback

    features = bubblewrap.features()
    if features.works:
        return features.describe()
    return f"{fallback.describe()}; no bubblewrap: {features.problem}"
