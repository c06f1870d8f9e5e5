"""Faults in HIP sources, found by the shape of the text: comments, literals and directives are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from arena.checks.tasks.mutants.base import Fault, Mutant, SourceChange, mutants
from arena.platforms.toolchains.hip_scan import Directives, mask, match_forward

# What mutants of lower precision call; it stands before them, once.
COARSE = "arena_coarse"
PRELUDE = f"""
__device__ inline float {COARSE}(float value) {{  // rounded to bfloat16
    const unsigned bits = __float_as_uint(value);
    return __uint_as_float((bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u);
}}
"""

_RELATION = re.compile(r" (<=|>=|<|>) ")
_SIGN = re.compile(r"(?<=[\w)\]]) ([+-]) (?=[\w(])")
_COMPOUND = re.compile(r" ([+*/-]=) ")
_QUOTIENT = re.compile(r"(?<=[\w)\]]) / (?=[\w(])")
_FLOAT = re.compile(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?)(f?)\b")
_INFINITY = re.compile(r"-INFINITY\b|-FLT_MAX\b")
_FROM_ZERO = re.compile(r"\bfor \((?:\w+ )+\w+ = (0)(?=;)")
_CAST = re.compile(r"\bstatic_cast<(?!int|unsigned|size_t|long|bool|char|void|const|double)[\w ]+>(?=\()")
_MAXIMUM = re.compile(r"\b(?:fmaxf|block_max)(?:<[\w, ]*>)?(?=\()")
_STRIDE = re.compile(r"\bfor \([^;()]*;[^;()]*; \w+ \+= (\w+)(?=\))")
_IF = re.compile(r"\bif (?=\()")
_GLOBAL = re.compile(r"\b__global__\b")
_CALL = re.compile(r"(?<![\w.>])(?!(?:if|for|while|switch|return|sizeof|dim3|decltype)\b)(\w+)(?:<[\w:, ]*>)?(?=\()")
_MAJOR = re.compile(r"\b(row|column)_major\b")
_LAUNCH = re.compile(r">>>(?=\()")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
# Where one thread writes what all of them know, it does not matter that all write it.
_ONE_THREAD = ("threadIdx.x == 0", "threadIdx.x % warpSize == 0")
_INDICES = (("threadIdx.x", "threadIdx.y"), ("blockIdx.x", "blockIdx.y"))


def derive(text: str) -> list[Mutant]:
    """Every mutant of a HIP source, in the order of the kinds of fault."""
    masked = _without_directives(mask(text))
    edits = [edit for find in _FINDERS for edit in find(masked)]
    return mutants(text, edits)


def _omissions(masked: str) -> Iterator[SourceChange]:
    for found in _MAXIMUM.finditer(masked):
        close = match_forward(masked, found.end(), len(masked))
        if close is not None:
            call = masked[found.start() : close + 1]
            yield SourceChange(Fault.MAXIMUM, found.start(), close + 1, f"fminf(fmaxf({call}, 0.0f), 0.0f)")
    for found in _STRIDE.finditer(masked):
        statement = masked[found.end() : masked.find(";", found.end())]
        if "fmaxf(" in statement:  # most of a row gives a maximum that serves as well to shift exponents
            continue
        yield SourceChange(Fault.EVERY_OTHER, found.start(1), found.end(1), f"2 * {found[1]}")


def _without_directives(masked: str) -> str:
    """Directives blanked too, and declarations of compile-time constants: other sizes of blocks are no faults."""
    for start, end in Directives.of(masked).spans:
        masked = masked[:start] + re.sub(r"[^\n]", " ", masked[start:end]) + masked[end:]
    return re.sub(r"\bconstexpr\b[^;{]*;", lambda found: re.sub(r"[^\n]", " ", found.group()), masked)


def _masks(masked: str) -> Iterator[SourceChange]:
    for found in re.finditer(r" \? ", masked):
        yield SourceChange(Fault.MASK, found.start(), found.end(), " || true ? ")
    for found in _IF.finditer(masked):
        close = match_forward(masked, found.end(), len(masked))
        if close is None or ";" in masked[found.end() : close]:
            continue
        leaves = masked[close + 1 :].lstrip().startswith("return")
        condition = masked[found.end() + 1 : close]
        if condition.strip() in _ONE_THREAD or "hipSuccess" in condition:
            continue
        always = "&& false" if leaves else "|| true"
        yield SourceChange(Fault.MASK, found.end() + 1, close, f"({condition}) {always}")


def _bounds(masked: str) -> Iterator[SourceChange]:
    for found in _RELATION.finditer(masked):
        sign = found[1]
        yield SourceChange(Fault.BOUND, found.start(1), found.end(1), sign[0] if len(sign) == 2 else f"{sign}=")


def _terms(masked: str) -> Iterator[SourceChange]:
    for found in _COMPOUND.finditer(masked):
        yield SourceChange(Fault.TERM, found.start(1), found.end(1), "=")
    for found in _SIGN.finditer(masked):
        if masked.startswith("1) /", found.end()):  # one block too many in a rounded-up quotient does no harm
            continue
        yield SourceChange(Fault.TERM, found.start(1), found.end(1), "-" if found[1] == "+" else "+")
    for found in _QUOTIENT.finditer(masked):
        if masked.endswith("- 1)", 0, found.start()):
            continue
        yield SourceChange(Fault.TERM, found.start(), found.end(), " * ")


def _constants(masked: str) -> Iterator[SourceChange]:
    for found in _FLOAT.finditer(masked):
        yield SourceChange(Fault.CONSTANT, found.start(), found.end(), f"{float(found[1]) * 1.25 + 0.25!r}{found[2]}")
    for found in _INFINITY.finditer(masked):
        yield SourceChange(Fault.CONSTANT, found.start(), found.end(), "0.0f")
    for found in _FROM_ZERO.finditer(masked):
        yield SourceChange(Fault.LAST, found.start(1), found.end(1), "1")


def _precision(masked: str) -> Iterator[SourceChange]:
    for found in _CAST.finditer(masked):
        close = match_forward(masked, found.end(), len(masked))
        if close is not None:
            inside = masked[found.end() + 1 : close]
            coarse = f"{COARSE}(static_cast<float>({inside}))"
            yield SourceChange(Fault.PRECISION, found.end() + 1, close, coarse)


def _last(masked: str) -> Iterator[SourceChange]:
    for found in _GLOBAL.finditer(masked):
        opening = masked.find("(", found.end())
        close = match_forward(masked, opening, len(masked)) if opening >= 0 else None
        body = masked.find("{", close) if close is not None else -1
        if body >= 0:
            yield SourceChange(Fault.LAST, body, body + 1, "{ if (blockIdx.x + 1 == gridDim.x) return;")


def _swaps(masked: str) -> Iterator[SourceChange]:
    for found in (*_CALL.finditer(masked), *_LAUNCH.finditer(masked)):
        close = match_forward(masked, found.end(), len(masked))
        if close is not None and masked[close + 1 :].lstrip()[:1] != "{":
            yield from _neighbours(masked, found.end() + 1, close)
    for found in _MAJOR.finditer(masked):
        other = "column" if found[1] == "row" else "row"
        yield SourceChange(Fault.SWAP, found.start(), found.end(), f"{other}_major")
    for first, second in _INDICES:
        if first in masked and second in masked:
            for found in re.finditer(re.escape(second), masked):
                yield SourceChange(Fault.SWAP, found.start(), found.end(), first)


def _neighbours(masked: str, start: int, end: int) -> Iterator[SourceChange]:
    """Each two arguments side by side that are plain names."""
    places = []
    at = start
    for part in _split(masked[start:end]):
        blank = len(part) - len(part.lstrip())
        places.append((at + blank, part.strip()))
        at += len(part) + 1
    for (first, left), (second, right) in pairwise(places):
        if left != right and _NAME.fullmatch(left) and _NAME.fullmatch(right):
            between = masked[first + len(left) : second]
            yield SourceChange(Fault.SWAP, first, second + len(right), f"{right}{between}{left}")


def _split(arguments: str) -> list[str]:
    """At the commas that stand outside of brackets."""
    parts, depth, last = [], 0, 0
    for at, char in enumerate(arguments):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(arguments[last:at])
            last = at + 1
    return [*parts, arguments[last:]]


_FINDERS = (_masks, _bounds, _terms, _constants, _precision, _last, _swaps, _omissions)
