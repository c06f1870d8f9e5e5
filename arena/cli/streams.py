"""Standard streams of the command: open, able to show any text, and quiet once their reader has gone."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from typing import TextIO

READER_GONE = 141
"""exit code where the reader of a pipe has gone: 128 + SIGPIPE, as shells report it"""
_MODES = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def prepare() -> None:
    """Open closed streams on /dev/null, and have characters that a terminal's encoding lacks shown as escapes."""
    for number, (name, mode) in enumerate(_MODES):
        if not _is_open(number):
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def reader_has_gone() -> bool:
    """Return whether stdout or stderr is a pipe or a terminal at whose other end nobody is."""
    ends = select.poll()
    for number in (1, 2):
        ends.register(number, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in ends.poll(0))


def say(text: str) -> None:
    """Write a line to stderr, where it can be written."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def finish(code: int) -> int:
    """Write out what stdout and stderr hold, and return the exit code: the given one unless the output was lost."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            code = code or READER_GONE
            _silence(stream)
        except OSError as problem:
            _silence(stream)
            say(f"arena: the output could not be written: {problem.strerror}; make room and repeat the command")
            code = code or 3
        except ValueError:  # closed by whoever called us
            continue
    return code


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _silence(stream: TextIO) -> None:
    """Lead it to /dev/null: Python writes out what it holds once more when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
