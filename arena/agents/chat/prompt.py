"""Messages to a model: the text and files that other agents find in their workspace, and replies to its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

TEXT = "TASK.md"
_LIBRARY, _INCLUDES = "headers", re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([\w.]+)"', re.MULTILINE)
_NOT_SHOWN = ("evaluate", "include")
"""the command, which a model cannot call, and headers of a compiler, which it knows"""
_LONG_HEADER_WORDS = 400
"""a header that is longer stands behind its name"""
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".h": "cpp", ".hip": "cpp"}

_HEAD = """\
You write one file, `{kernel}`: a GPU kernel for the task below. You have no tools and run nothing. The text of the \
task is written for agents that work in a folder and call `./evaluate`; the files of that folder stand after it, of \
`headers/` those that the baseline includes, if they are short.

Answer with the complete file in one fenced code block that begins with ```{language}. It must define `{entry}`. \
Nothing else of an answer is read, and parts of a file are not put together.

{turns}

---

"""
_ONE_ANSWER = "You have one answer, and no feedback: take care that it is right on every input of the domain."
_TURNS = """\
You have {turns} answers. `./evaluate` is called on each, and the next message holds what it prints. The fastest file \
that passes counts. Limits on tokens and time may end the conversation earlier."""
_NO_CODE = """\
The answer holds no file: there is no complete fenced code block with `{kernel}` in it. Answer with the complete file \
in one block that begins with ```{language} and ends with ```."""
_CUT_OFF = """\
The answer was cut off at the limit on its length{limit}, before the file was complete. Think less and write less \
around it: answer with the complete file in one block that begins with ```{language}."""
_LONG = '\nNot shown here; its functions are named under "Entry": {names}. {how}\n'
_ASK = "To read one, answer with its name and without a code block, which takes one of your answers."
_INCLUDE = "A kernel may include it."
_NEXT = """\
./evaluate says:

{feedback}

{left} Answer with the complete file again, in one block that begins with ```{language}: {aim}."""


def files_of(folder: Path) -> dict[str, str]:
    """Return the files of a workspace that a model is shown, by path in it, without the text of the task.

    Of the headers that a kernel may include, they are those that the baseline does.
    """
    names = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    used = _included(folder)
    names = [name for name in names if name.parts[0] != _LIBRARY or name.name in used]
    shown = [name for name in names if name.parts[0] not in (TEXT, *_NOT_SHOWN) and name.name != "__init__.py"]
    return {str(name): (folder / name).read_text(encoding="utf-8") for name in shown}


def _included(folder: Path) -> set[str]:
    """Return the headers of a workspace that its kernel includes, directly or through one another."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (folder / _LIBRARY).glob("*.h")}
    found: set[str] = set()
    waiting = [path.read_text(encoding="utf-8") for path in folder.glob("kernel.*")]
    while waiting:
        names = {*_INCLUDES.findall(waiting.pop())} & texts.keys() - found
        found |= names
        waiting += [texts[name] for name in names]
    return found


def prompt_of(folder: Path, kernel: str, entry: str, turns: int = 1) -> str:
    """Return the first message to a model.

    Args:
        folder: a workspace as every agent gets it.
        kernel: the name of the file to be written.
        entry: the function that it must define.
        turns: how many answers the model has.
    """
    told = _ONE_ANSWER if turns == 1 else _TURNS.format(turns=turns)
    head = _HEAD.format(kernel=kernel, language=language_of(kernel), entry=entry, turns=told)
    files = files_of(folder)
    long = long_headers(files)
    shown = {name: text for name, text in files.items() if name not in long}
    text = head + with_files((folder / TEXT).read_text(encoding="utf-8"), shown)
    if not long:
        return text
    names = ", ".join(f"`{name}` ({len(content.split()):,} words)" for name, content in long.items())
    return text + _LONG.format(names=names, how=_INCLUDE if turns == 1 else _ASK)


def long_headers(files: Mapping[str, str]) -> dict[str, str]:
    """Return the headers among these files that the first message only names."""
    found = {name: text for name, text in files.items() if Path(name).parts[0] == _LIBRARY}
    return {name: text for name, text in found.items() if len(text.split()) > _LONG_HEADER_WORDS}


def asked_headers(answer: str, headers: Mapping[str, str]) -> str:
    """Return the headers that an answer names, each in a fenced block; empty where it names none."""
    found = {name: text for name, text in headers.items() if Path(name).name in answer}
    return with_files("", found).lstrip() if found else ""


def with_files(text: str, files: Mapping[str, str]) -> str:
    """Return a text, and after it files by name, each in a fenced block."""
    parts = [text.rstrip(), "\n\n---\n"]
    for name, content in files.items():
        parts.append(f"\n`{name}`:\n\n{_fenced(content, _LANGUAGES.get(Path(name).suffix, ''))}\n")
    return "".join(parts)


def language_of(kernel: str) -> str:
    """Return the tag of a block that holds this file."""
    return _LANGUAGES[Path(kernel).suffix]


def no_code(kernel: str, *, cut_off: bool, max_tokens: int | None) -> str:
    """Return the reply to an answer without a kernel file."""
    if cut_off:
        limit = f" ({max_tokens} tokens)" if max_tokens else ""
        return _CUT_OFF.format(limit=limit, language=language_of(kernel))
    return _NO_CODE.format(kernel=kernel, language=language_of(kernel))


def next_turn(kernel: str, feedback: str, left: int, *, passed: bool) -> str:
    """Return the reply to an evaluated file: what `./evaluate` prints, and how many answers remain."""
    aim = "faster, and still right" if passed else "right first, then fast"
    many = f"You have {left} {'answer' if left == 1 else 'answers'} left."
    return _NEXT.format(feedback=feedback.strip(), left=many, language=language_of(kernel), aim=aim)


def _fenced(text: str, language: str) -> str:
    """Return text in a fence that is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
