"""The real programs of agents, for tests: from PATH, else installed with npm into the cache, once for all workers."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from arena.agents.tried import shipped_definitions

INSTALL_TIMEOUT_S = 100


@dataclass(frozen=True)
class Package:
    """An npm package with the version that was tried, and the binary in it."""

    spec: str
    binary: str
    asked_for: bool = False
    """installed only where ARENA_TEST_CLIS=all asks for it: it takes long, and the others show the same"""


def _package(name: str, *, asked_for: bool = False) -> Package:
    definition = shipped_definitions()[name]
    return Package(definition.install.split()[-1], definition.command[0], asked_for)


PACKAGES = {
    "claude_code": _package("claude_code"),
    "codex": _package("codex"),
    "gemini_cli": _package("gemini_cli", asked_for=True),
    "opencode": _package("opencode", asked_for=True),
}
"""By the name of the agent's definition."""


def cache_folder() -> Path:
    """Where what tests install is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "unseen-arena" / "clis"


def cli(name: str) -> Path:
    """The binary of a CLI; its folder belongs on the PATH. The test is skipped where it cannot be had."""
    package = PACKAGES[name]
    present = shutil.which(package.binary)
    if present is not None:
        return Path(present)
    if package.asked_for and os.environ.get("ARENA_TEST_CLIS") != "all":
        pytest.skip(f"{package.binary} is not on PATH; ARENA_TEST_CLIS=all installs it")
    folder = cache_folder() / package.spec.strip("@").replace("/", "_")
    binary = folder / "node_modules" / ".bin" / package.binary
    with _locked(folder):
        if not (folder / "works").is_file():
            _install(package, folder, binary)
    return binary


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(package: Package, folder: Path, binary: Path) -> None:
    """Install, start once, and note that it works; an install that was cut off is begun again."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"{package.binary} is not on PATH, and there is no npm to install it with")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package.spec]
    for step in (command, [str(binary), "--version"]):
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{package.spec} cannot be installed here: {error}")
        if done.returncode != 0:
            pytest.skip(f"{package.spec} cannot be installed here: {done.stderr.strip()[-300:]}")
    (folder / "works").touch()
