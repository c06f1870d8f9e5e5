"""A program under evaluation and the host it lives in: started when first needed, replaced when dead."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.errors import InfrastructureError
from arena.judge.hosts import Host, HostFolder, Template
from arena.judge.watchdog import WatchedHost, memory_limit_bytes
from arena.model.task import Case, Task
from arena.protocol import Language, Load, Prepare
from arena.scratch import prefix as scratch_prefix
from arena.toolchains.task_header import dtype_key


@dataclass(frozen=True)
class Program:
    """What a host loads: one file under the key `""`, or one library for each tuple of dtypes."""

    task: Task
    language: Language
    files: Mapping[str, Path]
    copies: tuple[str, ...] = ()
    target: str = ""
    once: bool = False

    def key(self, case: Case) -> str:
        """Which of its files a case needs."""
        return "" if "" in self.files else dtype_key(self.task, case)

    def load_message(self, key: str, folder: Path) -> Load:
        """How a host is told to load it, from a copy in this folder."""
        copy = Path(tempfile.mkdtemp(dir=folder)) / self.files[key].name
        shutil.copyfile(self.files[key], copy)
        return Load(self.language, str(copy), self.task.entry, self.copies, self.target, self.once)


class Subject:
    """A program with at most one live host. The host may be started while the program is still being built."""

    def __init__(
        self,
        template: Template,
        cache: Path | None,
        hide: tuple[Path, ...],
        timeout_s: float,
        memory_bytes: int | None = None,
    ) -> None:
        """`memory_bytes`: what its hosts may take, half of the machine's if None."""
        self._program: Program | None = None
        self._memory_bytes = memory_bytes or memory_limit_bytes()
        self._template, self._hide, self._timeout_s = template, hide, timeout_s
        self._home = Path(tempfile.mkdtemp(prefix=scratch_prefix("host")))
        self._folder = Path(tempfile.mkdtemp(prefix=scratch_prefix("program")))
        self._cache = cache or self._home / "triton"
        self._host: Host | None = None
        self._loaded: str | None = None
        self.isolation = ""

    @property
    def program(self) -> Program:
        """What is loaded."""
        if self._program is None:
            raise InfrastructureError("there is no program yet")
        return self._program

    def adopt(self, program: Program) -> Subject:
        """Say what to load; returns itself."""
        self._program = program
        return self

    def warm(self) -> None:
        """Start the host and have it wake the device, which takes a while and needs no program."""
        self._started().ask(Prepare(), self._timeout_s)

    @property
    def host(self) -> Host:
        """The live host."""
        if self._host is None:
            raise InfrastructureError("no host is running")
        return self._host

    def ready(self, case: Case) -> Host:
        """A live host with what the case needs loaded. Raises `CandidateFailed` where that does not load."""
        host = self._started()
        key = self.program.key(case)
        if self._loaded != key:
            host.ask(self.program.load_message(key, self._folder), self._timeout_s)
            self._loaded = key
        return host

    def _started(self) -> Host:
        if self._host is None:
            host = self._template.spawn(HostFolder(self._home, self._cache, self._folder), self._hide)
            self._host = WatchedHost(host, self._memory_bytes)
            self.isolation = self._host.isolation
        return self._host

    def close(self) -> None:
        """Kill the host, if there is one; the next `ready` starts another."""
        if self._host is not None:
            self._host.bury()
            self._host = None
        self._loaded = None

    def discard(self) -> None:
        """Kill the host and delete everything it wrote."""
        self.close()
        for folder in (self._home, self._folder):
            shutil.rmtree(folder, ignore_errors=True)
