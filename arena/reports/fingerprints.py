"""Fingerprints of source text that survive renaming and reformatting. Used by `arena audit`.

Winnowing over k-grams of tokens: Schleimer, Wilkerson, Aiken, "Winnowing: Local Algorithms for Document
Fingerprinting", SIGMOD 2003.
"""

from __future__ import annotations

import keyword
import re
import zlib
from collections.abc import Iterator

GRAM, WINDOW = 16, 8
"""tokens of a fingerprint, and successive k-grams of which one is kept: any match of 23 tokens is found"""
_BASE, _MODULUS = 1_000_003, (1 << 61) - 1
_C_SUFFIXES = (".hip", ".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hxx", ".inl")
SUFFIXES = (".py", *_C_SUFFIXES)

_NAMES_AND_NUMBERS = r"""
  | (?P<name>[^\W\d]\w*)
  | (?P<number>\.?\d(?:[eEpP][-+]|[\w.'])*)
  | (?P<sign>[^\s\w])
"""
_QUOTED = r""""(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?"""
_PYTHON = re.compile(
    r"""(?P<skip>\#[^\n]* | \\\r?\n | [^\S\n]+) | (?P<line>\n)
  | (?P<string>[A-Za-z]{0,2}(?:\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z) | '''(?:\\.|[^\\])*?(?:'''|\Z) | """
    + rf"{_QUOTED}))"
    + _NAMES_AND_NUMBERS,
    re.VERBOSE | re.DOTALL,
)
_C = re.compile(
    rf"(?P<skip>//[^\n]* | /\*.*?(?:\*/|\Z) | \\\r?\n | \s+) | (?P<string>{_QUOTED})" + _NAMES_AND_NUMBERS,
    re.VERBOSE | re.DOTALL,
)
_C_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        asm auto bool break case char const constexpr continue default define do double else endif enum extern false
        float for goto half if ifdef ifndef include inline int long namespace new nullptr operator pragma private
        public return short signed sizeof static struct switch template true typedef typename union unsigned using
        void volatile while threadIdx blockIdx blockDim gridDim
        """,
    )
)
_PYTHON_WORDS = frozenset(keyword.kwlist)


def tokens(text: str, suffix: str) -> list[str]:
    """Return the tokens of a source file without comments, white space and docstrings.

    A name becomes `n`, unless it is a keyword, a member (`tl.load`, `std::min`) or begins with two underscores.

    Args:
        text: of the file, which need not be valid.
        suffix: of its name; `.py` is Python, any other is C++.
    """
    python = suffix == ".py"
    words = _PYTHON_WORDS if python else _C_WORDS
    found: list[str] = []
    depth, begins = 0, True
    for match in (_PYTHON if python else _C).finditer(text):
        kind, token = match.lastgroup, match.group()
        if kind == "skip":
            continue
        if kind == "line":
            begins = begins or depth == 0
            continue
        if kind == "string":
            if not (python and begins and depth == 0):
                found.append("s")
            continue
        begins = False
        if kind == "name":
            member = bool(found) and (found[-1] == "." or found[-2:] in ([":", ":"], ["-", ">"]))
            token = token if token in words or member or token.startswith("__") else "n"
        elif kind == "sign":
            depth = max(0, depth + (token in "([{") - (token in ")]}"))
        found.append(token)
    return found


def fingerprints(text: str, suffix: str) -> frozenset[int]:
    """Return the fingerprints of a source file; none where it has fewer than `GRAM` tokens.

    Args:
        text: of the file.
        suffix: of its name, as `tokens` takes it.
    """
    hashes = list(_rolled(tokens(text, suffix)))
    windows = range(max(1, len(hashes) - WINDOW + 1)) if hashes else ()
    return frozenset(min(hashes[start : start + WINDOW]) for start in windows)


def _rolled(found: list[str]) -> Iterator[int]:
    """Yield a hash of every k-gram, the same in every process."""
    highest, value = pow(_BASE, GRAM, _MODULUS), 0
    codes = [zlib.crc32(token.encode("utf-8", "surrogatepass")) + 1 for token in found]
    for place, code in enumerate(codes):
        value = (value * _BASE + code) % _MODULUS
        if place >= GRAM:
            value = (value - codes[place - GRAM] * highest) % _MODULUS
        if place >= GRAM - 1:
            yield value
