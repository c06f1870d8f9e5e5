"""Texts of a source that a compiler hands to the assembler as they are: names of sections and symbols.

With the end of a line in it such a name goes on as assembly, which nothing marks as inline assembly. Read in what the
preprocessor has left, so that no macro hides them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NAMES_NAME = "names.txt"
PREPROCESSED = "*.ii"
"""what `-save-temps=obj` keeps beside the output"""
_PIECE = re.compile(
    r"""
      (?<!\w) \d (?: '?[\w.] )*
    | (?P<raw> (?<!\w) (?:u8|u|U|L)? R"(?P<delimiter>[^()\\\s]{0,16})\( .*? \)(?P=delimiter)" )
    | (?P<text> " (?: \\[^\n] | [^"\\\n] )* "? )  # a pragma may leave one open, which ends with the line
    | ' (?: \\[^\n] | [^'\\\n] )* '?
    | (?P<attribute> \b__attribute(?:__)?\b )
    | (?P<assembly> \b(?:asm|__asm(?:__)?)\b )
    | (?P<double> (?: \[ | <: ) (?= \s* (?: \[ | <: ) ) )
    | (?P<opens> [(\[{] | <: | <% )
    | (?P<closes> [)\]}] | :> | %> )
    """,
    re.DOTALL | re.VERBOSE,
)
_NAMES = re.compile(r"\b_*(?:section|alias|weakref|symver|ifunc|target_clones)_*\b")
_ODD = re.compile(r"[\\;\n#]")


def note_odd_names(folder: Path) -> None:
    """Note names in the preprocessed sources of a folder that are more than names; the sources are removed."""
    found: list[str] = []
    for file in sorted(folder.glob(PREPROCESSED)):
        found += _odd(file.read_text(encoding="utf-8", errors="replace"))
        file.unlink()
    if found:
        (folder / NAMES_NAME).write_text("\n".join(found), encoding="utf-8")


def odd_names(library: Path) -> list[str]:
    """What was noted when a library was built."""
    file = library.with_name(NAMES_NAME)
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def _odd(text: str) -> Iterator[str]:
    """Literals in attributes that name something, and in whatever says `asm`, that are more than names."""
    pieces = _PIECE.finditer(text)
    for piece in pieces:
        if not (piece["attribute"] or piece["assembly"] or piece["double"]):
            continue
        end, texts, assembly = _group(pieces, depth=1 if piece["double"] else 0)
        if piece["assembly"] or assembly or _NAMES.search(text, piece.end(), end):
            yield from (" ".join(one.split())[:80] for one in texts if not one.startswith('"') or _ODD.search(one))


def _group(pieces: Iterator[re.Match[str]], depth: int) -> tuple[int, list[str], bool]:
    """Where the brackets that come next, or are open, are closed, the literals inside, and whether `asm` is."""
    end, texts, assembly = 0, [], False
    for piece in pieces:
        end, assembly = piece.end(), assembly or bool(piece["assembly"])
        depth += bool(piece["opens"] or piece["double"]) - bool(piece["closes"])
        if piece["raw"] or piece["text"]:
            texts.append(piece[0])
        if depth <= 0:
            break
    return end, texts, assembly
