"""The kernel file in a model's answer: the one block of code that defines the entry, among others and unclosed ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$")
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_TAGS = {
    ".py": {"python", "py", "python3", "triton"},
    ".hip": {"hip", "cpp", "c++", "cc", "cxx", "cuda", "cu", "c", "hpp"},
}


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block. `closed`: whether its end was there."""

    tag: str
    text: str
    closed: bool


def without_thoughts(answer: str) -> str:
    """Return an answer without what the model thought at its beginning; empty where that has no end."""
    text = _THOUGHT_END.sub("", answer)  # some servers leave the opening tag out
    return "" if _THOUGHT.match(text) else text


def code_blocks(text: str) -> list[CodeBlock]:
    """Return the fenced blocks of an answer in order; a fence within a longer or another fence is text."""
    return list(_blocks(text.replace("\r\n", "\n").split("\n")))


def _blocks(lines: list[str]) -> Iterator[CodeBlock]:
    opened, tag, content = "", "", list[str]()
    for line in lines:
        found = _FENCE.match(line)
        info = found["info"].strip() if found else ""
        if not opened:
            if found and "`" not in info:
                opened, tag, content = found["fence"], _tag(info), []
        elif found and not info and found["fence"].startswith(opened):
            yield CodeBlock(tag, _text(content), closed=True)
            opened = ""
        else:
            content.append(line)
    if opened:
        yield CodeBlock(tag, _text(content), closed=False)


def _tag(info: str) -> str:
    words = info.replace("{", " ").replace(":", " ").split()
    return words[0].lstrip(".").lower() if words else ""


def _text(lines: list[str]) -> str:
    """Return a block's text, without the indentation that all lines share in a list, and with one end of line."""
    filled = [line for line in lines if line.strip()]
    shared = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)
    return "\n".join(line[shared:] for line in lines).rstrip() + "\n"


def kernel_in(answer: str, entry: str, suffix: str, *, cut_off: bool = False) -> str | None:
    """Return the kernel file that an answer holds, or None.

    Args:
        answer: what the model said.
        entry: the function that the file must define.
        suffix: `.py` or `.hip`.
        cut_off: whether the answer ended at a limit, so that a block without an end is incomplete.

    Returns:
        Of the blocks that define the entry, the last; else the last in the file's language; else the last without a
        language.
    """
    blocks = [block for block in code_blocks(without_thoughts(answer)) if block.text.strip()]
    whole = [block for block in blocks if block.closed or not cut_off]
    defining = [block for block in whole if _defines(block.text, entry, suffix)]
    spelled = [block for block in whole if block.tag in _TAGS[suffix]]
    chosen = defining or spelled or [block for block in whole if not block.tag]
    return chosen[-1].text if chosen else None


def _defines(code: str, entry: str, suffix: str) -> bool:
    name = re.escape(entry)
    if suffix == ".py":
        return re.search(rf"^(?:async\s+)?def\s+{name}\s*\(|^{name}\s*=", code, re.MULTILINE) is not None
    return re.search(rf"\b{name}\s*\([^;{{}}]*\)\s*(?:noexcept\s*)?\{{", code) is not None
