"""Shorten what the HIP-on-CPU compiler prints: the candidate's own lines, and which names of HIP the header lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

MOST_LINES = 20
_LINE_CHARACTERS = 160
_READ_CHARACTERS = 2000
"""of each line that a compiler prints: patterns are tried from each of them"""
_MESSAGE = re.compile(
    r"(?P<file>[^\s:]+):(?:(?P<line>\d+):)?(?:\d+:)? (?P<kind>(?:fatal )?error|warning|note): (?P<what>.*)"
)
_REQUIRED = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)?\s+required .*")
_INCLUDED = re.compile(r"(?:In file included)?\s+from (?P<file>[^\s:]+):(?P<line>\d+)[:,].*")
_INSTANTIATION = re.compile(r"[^\s:]+: In (?P<what>(?:instantiation|substitution) of .*):")
_UNLINKED = re.compile(r".*\b(?P<what>(?:undefined reference to|multiple definition of) [^;]*).*")
_LINE_DIRECTIVE = re.compile(r'#line (?P<line>\d+) "(?P<file>[^"]+)"')
_PERMISSIVE = re.compile(r"there are no arguments to '(?P<name>\w+)' that depend on a template parameter.*")
_FLAG = re.compile(r" \[-fpermissive\]$")
_SUGGESTION = re.compile(r"; did you mean .*")
_EMPTY_NOTES = ("(if you use '-fpermissive'", "  template argument deduction/substitution failed")
_FOLDERS = re.compile(r"/(?:[^\s:'\"`]+/)?(?:include/(?:c\+\+/[\d.]+/)?|(?=[^\s/:'\"`]+))")
_IN_EVERY_TASK_H = {"__global__", "__device__", "hipError_t", "hipStream_t"}
_UNDECLARED = (
    re.compile(r"'(?:::)?(?P<name>\w+)' was not declared in this scope"),
    re.compile(r"there are no arguments to '(?P<name>\w+)' that depend on a template parameter"),
    re.compile(r"'(?:::)?(?P<name>\w+)' has not been declared"),
    re.compile(r"'(?P<name>\w+)' does not name a type"),
    re.compile(r"'(?P<name>\w+)' is not a member of '(?:hip_cpu|cooperative_groups|cg)'"),
    re.compile(r"(?P<name>[\w./-]+): No such file or directory"),
    re.compile(r"(?P<name>inline assembly) for a GPU"),
)
# A misspelt name of the candidate's own is the candidate's mistake; these belong to HIP or to a GPU's headers.
_OF_A_GPU = re.compile(
    r"__\w+|hip[A-Z_]\w*|(?:unsafe|safe)?[aA]tomic[A-Z]\w*|make_[a-z]+\d+|h2?(?:exp|log|sqrt)\w*"
    r"|(?:hip|rocwmma|rocprim|hipcub|ck|cub|thrust|cuda)\b[\w./-]*|cuda[A-Z_]\w*"
    r"|inline assembly|grid_group|coalesced_\w+|this_grid"
)


Place = tuple[str, int]
Lines = Mapping[Place, str]


@dataclass
class _Message:
    """One error or warning; `more` holds what else is said of it, with the place of each."""

    at: Place
    kind: str
    what: str
    more: list[tuple[Place, str]] = field(default_factory=list)


def explain(log: str, texts: Mapping[str, str] | None = None, *, failed: bool = True) -> str:
    """Return at most `MOST_LINES` lines: each error once, with the line of the file that it is about.

    Where names of HIP were unknown, the last line says so, with file and line of the first.

    Args:
        log: what the compiler and the linker printed.
        texts: the compiled files by name, with the `#line` directives that they were given.
        failed: whether errors are wanted, else warnings.
    """
    log = "\n".join(line[:_READ_CHARACTERS] for line in log.splitlines())
    lines = _own_lines(texts or {})
    wanted: dict[object, _Message] = {}
    for message in _messages(log, lines):
        if ("error" in message.kind) == failed:
            wanted.setdefault((message.at, _SUGGESTION.sub("", message.what)), message)
    if not wanted:
        printed = [_FOLDERS.sub("", line) for line in log.splitlines()]
        return "".join(f"{line}\n" for line in [*printed[:1], *printed[1:][-MOST_LINES + 1 :]])
    verdict = _unknown_names(wanted.values()) if failed else []
    shown: list[str] = []
    quoted: set[Place] = set()
    for number, message in enumerate(wanted.values()):
        left_out = len(wanted) - number
        block = _block(message, lines, quoted, MOST_LINES - len(verdict) - len(shown) - (left_out > 1))
        if not block:
            shown.append(f"… {left_out} more")
            break
        shown += block
    return "".join(f"{line}\n" for line in [*shown, *verdict])


def _own_lines(texts: Mapping[str, str]) -> Lines:
    """Return the lines of the candidate and of what it includes by the places that compilers know them by."""
    found: dict[Place, str] = {}
    for name, text in texts.items():
        file, number = name, 0
        for line in text.splitlines():
            number += 1
            directive = _LINE_DIRECTIVE.fullmatch(line)
            if directive is not None:
                file, number = directive["file"], int(directive["line"]) - 1
            else:
                found.setdefault((file, number), line)
    return found


def _messages(log: str, lines: Lines) -> Iterator[_Message]:
    """Yield errors and warnings in order, each with what led to it and the notes behind it."""
    current: _Message | None = None
    before: list[tuple[Place, str]] = []
    for line in log.splitlines():
        if found := _MESSAGE.fullmatch(line) or _UNLINKED.fullmatch(line):
            groups = {"file": "", "line": "", "kind": "error", **found.groupdict()}
            at = (groups["file"], int(groups["line"] or 0))
            what = _PERMISSIVE.sub(r"'\g<name>' was not declared in this scope", _FLAG.sub("", groups["what"]))
            if groups["kind"] == "note":
                if current is not None and at in lines and not what.startswith(_EMPTY_NOTES):
                    current.more.append((at, f"note: {what.strip()}"))
            elif groups["file"] != "collect2":
                if current is not None:
                    yield current
                current = _Message(at, groups["kind"], what, [one for one in before if one[0] != at])
            before = []
        elif found := _INSTANTIATION.fullmatch(line):
            before = [(("", 0), f"in {found['what']}")]
        elif found := _REQUIRED.fullmatch(line) or _INCLUDED.fullmatch(line):
            at = (found["file"], int(found["line"]))
            if at in lines:
                before.append((at, "from here"))
    if current is not None:
        yield current


def _block(message: _Message, lines: Lines, quoted: set[Place], room: int) -> list[str]:
    """Return a message and what is said of it as at most `room` lines; none where its source line finds no room."""
    block: list[str] = []
    for at, said in ((message.at, f"{message.kind}: {message.what}"), *message.more):
        file = _FOLDERS.sub("", at[0])
        place = f"{file}:{at[1]}: " if at[1] else f"{file}: " if file else ""
        block.append(place + _cut(said))
        if at in lines and at not in quoted:
            quoted.add(at)
            block.append(f"{at[1]:>5} | {_cut(lines[at].rstrip())}")
    return block[:room] if room > 1 else []


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_CHARACTERS else f"{line[: _LINE_CHARACTERS - 1]}…"


def _unknown_names(messages: Iterable[_Message]) -> list[str]:
    """Return a line that says which names of HIP are unknown, and why."""
    missing: dict[str, Place] = {}
    for message in messages:
        name = _missing_name(message.what)
        if name is not None:
            missing.setdefault(name, message.at)
    if not missing:
        return []
    file, line = next(iter(missing.values()))
    if missing.keys() & _IN_EVERY_TASK_H:
        return [f'{file}:{line}: names of HIP are unknown here: `#include "task.h"` must come before their first use']
    names = ", ".join(f"`{name}`" for name in missing)
    return [f"{file}:{line}: the HIP-on-CPU header does not provide {names}; this may still build for a GPU target"]


def _missing_name(what: str) -> str | None:
    for pattern in _UNDECLARED:
        found = pattern.search(what)
        if found is not None and _OF_A_GPU.fullmatch(found["name"]):
            return found["name"]
    return None
