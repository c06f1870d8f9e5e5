"""mini-swe-agent for the tests: from PATH, or installed once into an environment of its own in the user's cache."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from arena.agents.tried import tried_agents
from tests.agents.clis import cache_folder

VERSION = tried_agents()["mini_swe_agent"].version
WANTED = (f"mini-swe-agent=={VERSION}", "litellm[mcp]")
_INSTALL_S = 300.0


def mini_folder() -> Path:
    """The folder with `mini`; skips the test where it cannot be had."""
    found = shutil.which("mini")
    if found is not None:
        return Path(found).parent
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"mini-swe-agent-{VERSION}"
    with (cache / "mini-swe-agent.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").is_file():
            _install(place)
    return place / "bin"


def _install(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    options = ("--quiet", "--disable-pip-version-check", "--no-compile")
    pip = (str(place / "bin" / "python"), "-m", "pip", "install", *options, *WANTED)
    for command in ((sys.executable, "-m", "venv", str(place)), pip):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S)
        except subprocess.TimeoutExpired:
            pytest.skip(f"mini-swe-agent could not be installed within {_INSTALL_S:.0f} s")
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            pytest.skip(f"mini-swe-agent cannot be installed here: {''.join(last)}")
    (place / "complete").touch()
