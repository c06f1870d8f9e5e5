"""What a box needs for its network: the proxy outside, the relay inside, and variables that lead programs to it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from arena.agents.inside import relay
from arena.agents.network import AllowListProxy

_FIRST_PORT = 3128
_SOCKET, _RELAY = "proxy.sock", "relay.py"


class Outlet:
    """The way out for `allowed` (`host:port`); a context manager. Without any it does nothing.

    `folder` is made for it, outside; `place` is where that folder is to be seen in the box; `python` runs the relay.
    """

    def __init__(self, allowed: tuple[str, ...], folder: Path, place: str, python: str = sys.executable) -> None:
        self._folder, self._place, self._python = folder, place, python
        self._proxy = AllowListProxy(allowed, folder / _SOCKET) if allowed else None

    def __enter__(self) -> Self:
        """Put the relay into the folder and open the proxy."""
        self._folder.mkdir()
        if self._proxy is not None:
            shutil.copyfile(relay.__file__, self._folder / _RELAY)
            self._proxy.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the proxy."""
        if self._proxy is not None:
            self._proxy.__exit__(kind, error, at)

    @property
    def refused(self) -> Mapping[str, int]:
        """How often the proxy refused what."""
        return {} if self._proxy is None else self._proxy.refused

    @property
    def first(self) -> tuple[str, ...]:
        """What comes before the agent's command: the relay, run by a Python that loads nothing but itself."""
        if self._proxy is None:
            return ()
        ports = [str(port) for port in (self._port(), *self._proxy.loopback_ports())]
        script, socket = f"{self._place}/{_RELAY}", f"{self._place}/{_SOCKET}"
        return (self._python, "-I", "-S", script, socket, *ports, "--")

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which programs find a proxy."""
        if self._proxy is None:
            return {}
        url = f"http://127.0.0.1:{self._port()}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        proxies = {spelt: url for name in names for spelt in (name, name.lower())}
        direct = "127.0.0.1,localhost"
        return {**proxies, "NO_PROXY": direct, "no_proxy": direct, "NODE_USE_ENV_PROXY": "1"}

    def _port(self) -> int:
        """A port for the proxy inside that no allowed endpoint has."""
        assert self._proxy is not None
        taken = self._proxy.loopback_ports()
        return next(port for port in count(_FIRST_PORT) if port not in taken)
