"""Bounds of what a record may hold, which anybody may have written. Used by the structures that are stored."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

_PART = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_NAME = rf"^{_PART}\Z"
_TASK = rf"^[a-z0-9_]+/{_PART}/{_PART}\Z"
_DEVICE = r"^[A-Za-z0-9][A-Za-z0-9._:+-]{0,99}\Z"
_KIND = r"^[a-z_]{0,40}\Z"
_SPELLED = {
    _NAME: "is no name (letters, digits, `.`, `_` and `-`, 100 at most)",
    _TASK: "is no task id, such as triton2triton/moe/fused_moe",
    _DEVICE: "is no name of a platform or an architecture",
    _KIND: "is no kind of case",
}

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
"""finite; a latency may lie below 0, by noise"""
Positive = Annotated[float, Meta(gt=0, le=1e15)]
NotNegative = Annotated[float, Meta(ge=0, le=1e15)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Whole = Annotated[int, Meta(ge=-(2**62), le=2**62)]
"""what a program says of itself, which may be anything"""
Calls = Annotated[int, Meta(ge=0, le=2**31)]
Attempt = Annotated[int, Meta(ge=0, le=100_000)]
Name = Annotated[str, Meta(pattern=_NAME)]
"""of a run, an agent or a case; may be the name of a file"""
TaskId = Annotated[str, Meta(pattern=_TASK, max_length=200)]
"""of which names of files are made"""
DeviceName = Annotated[str, Meta(pattern=_DEVICE)]
"""of a platform or an architecture; may be the name of a folder"""
Kind = Annotated[str, Meta(pattern=_KIND)]


def spelled(problem: Exception) -> str:
    """Return the text of an error of msgspec, with words in place of the patterns above."""
    text = str(problem)
    for pattern, words in _SPELLED.items():
        text = text.replace(f"Expected `str` matching regex {pattern!r}", words)
    return text
