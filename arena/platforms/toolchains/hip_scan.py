"""Reads C++ just well enough to rewrite it: comments and literals blanked, brackets matched, scopes known."""

from __future__ import annotations

import math
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_OPAQUE = re.compile(
    r"""
      (?P<number> (?<!\w) \d (?:'?[\w.])* )
    | // (?: \\\r?\n | [^\n] )*
    | /\* .*? (?: \*/ | \Z )
    | R"(?P<delimiter>[^()\\\s]{0,16})\( (?: .*? \)(?P=delimiter)" | .* )  # without an end, all that follows: once
    | " (?: \\. | [^"\\\n] )* "?  # without an end, the rest of the line, as compilers read it
    | ' (?: \\. | [^'\\\n] )* '?
    """,
    re.DOTALL | re.VERBOSE,
)
_QUOTES = "\"'"
_LETTER = re.compile(r"(\\(?=\n))|[^\n]")  # a continued line still is one
_DIRECTIVE = re.compile(r"^[ \t]*\#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_NAMES = re.compile(r"(?:.*[^\w\s:])?([\w\s:]*)", re.DOTALL)  # the last of them, from one pass over the text
_NAMESPACE = re.compile(r"\bnamespace\b")
_LINKAGE = re.compile(r'\bextern\s*"[ ]*"\s*$')
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_OPENS = {close: opening for opening, close in _CLOSES.items()}


_allowed = threading.local()


class TooLong(Exception):
    """Reading a text took longer than it may: brackets or declarations were nested to keep the reader busy."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let what this thread reads take so many seconds of processor time; then `check_time` raises `TooLong`."""
    _allowed.until, before = time.thread_time() + seconds, getattr(_allowed, "until", math.inf)
    try:
        yield
    finally:
        _allowed.until = before


def check_time() -> None:
    """Raise `TooLong` where the time is up; to be called at least once for each pass over a text."""
    if time.thread_time() > getattr(_allowed, "until", math.inf):
        raise TooLong("the text takes too long to read: declarations or brackets are nested or repeated too often")


def mask(text: str) -> str:
    """Blank comments and the insides of literals; length, newlines and everything else stay."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if match.group("number") is not None:
            return found
        spaces = _LETTER.sub(lambda letter: letter[1] or " ", found)
        if found[0] == "/":
            return spaces
        last = found[-1] if found[-1] in _QUOTES else spaces[-1]
        return (found[0] + spaces[1:-1] + last)[: len(found)]

    return _OPAQUE.sub(blank, text)


def without_comments(text: str) -> str:
    """Return the text with a space for each comment; literals stay."""
    return _OPAQUE.sub(lambda found: " " if found.group().startswith(("//", "/*")) else found.group(), text)


@dataclass(frozen=True)
class Directives:
    """Where the preprocessor's lines are, continuation lines included."""

    spans: tuple[tuple[int, int], ...]

    @staticmethod
    def of(masked: str) -> Directives:
        """Find them in masked text."""
        return Directives(tuple(match.span() for match in _DIRECTIVE.finditer(masked)))

    def blanked(self, masked: str) -> str:
        """Return the beginning of the masked text with spaces for every directive."""
        parts, at = [], 0
        for begin, end in self.spans:
            if begin < len(masked):
                parts += [masked[at:begin], " " * (min(end, len(masked)) - begin)]
                at = min(end, len(masked))
        return "".join([*parts, masked[at:]])

    def end_of_piece(self, at: int, length: int) -> int:
        """Return where the text that belongs together with position `at` ends: its directive, or the file."""
        index = bisect_right(self.spans, (at, length + 1)) - 1
        if index >= 0 and self.spans[index][0] <= at < self.spans[index][1]:
            return self.spans[index][1]
        return length

    def contains(self, at: int) -> bool:
        """Return whether position `at` is in a directive."""
        return self.end_of_piece(at, -1) != -1


def match_forward(masked: str, opening: int, end: int) -> int | None:
    """Return the position of the bracket that closes the one at `opening`, before `end`."""
    check_time()
    stack: list[str] = []
    for at in range(opening, end):
        char = masked[at]
        if char in _CLOSES:
            stack.append(_CLOSES[char])
        elif char in _OPENS:
            if not stack or stack.pop() != char:
                return None
            if not stack:
                return at
    return None


def match_backward(masked: str, closing: int) -> int | None:
    """Return the position of the bracket that opens what `closing` closes; `>` matches `<`, and `->` is neither."""
    check_time()
    stack: list[str] = []
    opens = {**_OPENS, ">": "<"}
    for at in range(closing, -1, -1):
        char = masked[at]
        if char == ">" and (masked[at - 1 : at] == "-" or stack[-1:] not in ([], ["<"])):
            continue  # an arrow, or a comparison inside brackets
        if char in opens:
            stack.append(opens[char])
        elif char in ("(", "[", "{") or (char == "<" and stack and stack[-1] == "<"):
            if not stack or stack.pop() != char:
                return None
            if not stack:
                return at
        elif char == ";" and "{" not in stack:
            return None
    return None


def is_namespace_scope(masked: str, at: int, directives: Directives) -> bool:
    """Return whether a declaration at `at` stands outside of every function and class."""
    check_time()
    if directives.contains(at):
        return False
    code = directives.blanked(masked[:at])
    local = 0
    stack: list[bool] = []
    boundary = 0
    for position in (match.start() for match in re.finditer(r"[{};]", code)):
        char = code[position]
        if char == "{":
            stack.append(not _opens_namespace(code[boundary:position]))
            local += stack[-1]
        elif char == "}" and stack:
            local -= stack.pop()
        boundary = position + 1
    return local == 0


def _opens_namespace(before: str) -> bool:
    """Return whether a `{` behind this text is that of a namespace, or of `extern "C"`."""
    names = _NAMES.fullmatch(before)
    return bool((names and _NAMESPACE.search(names[1])) or _LINKAGE.search(before))


def split_top_level(masked: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Return the spans between commas outside of brackets; pieces with unbalanced `<` are joined."""
    check_time()
    cuts, depth, angles = [begin - 1], 0, 0
    for at in range(begin, end):
        char = masked[at]
        if char in _CLOSES:
            depth += 1
        elif char in _OPENS:
            depth -= 1
        elif depth == 0 and char == "<":
            angles += 1
        elif depth == 0 and char == ">" and masked[at - 1] != "-":
            angles -= 1
        elif depth == 0 and char == "," and angles == 0:
            cuts.append(at)
    return [(a + 1, b) for a, b in zip(cuts, [*cuts[1:], end], strict=True)]
