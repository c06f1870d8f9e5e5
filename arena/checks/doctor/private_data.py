"""Takes out of a text what tells who an owner is and where: for the file of `arena doctor --report`."""

from __future__ import annotations

import os
import platform as host_platform
import pwd
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from arena.agents.redaction import Redactor
from arena.package import own_folders

_SECRET_NAME = re.compile("TOKEN|KEY|SECRET|PASSW|CREDENTIAL|PROXY|AUTH", re.IGNORECASE)
_CREDENTIALS_OF_URL = re.compile(r"(://)[^/\s:@]+:[^/\s@]+@")
_HOME_OF_ANYBODY = re.compile(r"/(home|Users)/[^/\s'\":,;)]+")
_SHORTEST = 3
_PUBLIC = frozenset({"root", "localhost"})


class PrivateData:
    """The host name, user names, private folders and secret environment variables of this machine.

    Args:
        environment: the environment variables; by default those of this process.
        host: the host name, with or without its domain; by default that of this machine.
        home: the home folder; by default that of this process.
    """

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        host: str | None = None,
        home: Path | None = None,
    ) -> None:
        self._secrets = Redactor({name: value for name, value in environment.items() if _SECRET_NAME.search(name)})
        host = host_platform.node() if host is None else host
        folders = {sys.prefix: "<python>", str(own_folders()[-1]): "<arena>", str(home or Path.home()): "~"}
        self._folders = sorted(((path, mark) for path, mark in folders.items() if path != "/"), key=_by_length)
        named = {host: "<host>", host.partition(".")[0]: "<host>", environment.get("HOSTNAME", ""): "<host>"}
        named.update(dict.fromkeys(_users(environment), "<user>"))
        kept = ((word, mark) for word, mark in named.items() if len(word) >= _SHORTEST and word not in _PUBLIC)
        self._words = [(_whole(word), mark) for word, mark in sorted(kept, key=_by_length)]

    def clean(self, text: str) -> str:
        """Return the text with a mark such as `<host>` or `~` in place of each private datum."""
        text = _CREDENTIALS_OF_URL.sub(r"\1<credentials>@", self._secrets.clean(text))
        for path, mark in self._folders:
            text = re.sub(rf"{re.escape(path)}(?![\w.-])", mark, text)
        text = _HOME_OF_ANYBODY.sub(r"/\1/<user>", text)
        for pattern, mark in self._words:
            text = pattern.sub(mark, text)
        return text


def _users(environment: Mapping[str, str]) -> Iterator[str]:
    yield from (environment.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER"))
    try:
        yield pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have a number alone
        return


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])")


def _by_length(pair: tuple[str, str]) -> int:
    """Longest first: a folder before the one around it."""
    return -len(pair[0])
