"""Shorten the traceback of a Python candidate: its own frames, and what was raised. Used by the command loop."""

from __future__ import annotations

import dis
import traceback
from collections.abc import Iterator
from pathlib import Path

_MOST_FRAMES = 16
_DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
_MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"


def explain(problem: BaseException, candidate: str) -> str:
    """Return the traceback of `problem` with the frames of one file only, under its bare name.

    Triton's interpreter raises anew at every function of a kernel: what it was raised for stands with the frames of
    all. Causes in which the file has no part are left out. A problem without any such frame is told in full.

    Args:
        problem: what was raised.
        candidate: the path of the candidate's file.
    """
    blocks: list[str] = []
    above: list[str] = []
    link = ""
    traced = False
    for one, cause in _chain(problem):
        frames = [*above, *_frames(one, candidate)]
        if type(one).__name__ == "InterpreterError" and cause is not None:
            above = frames
            continue
        above = []
        if frames or not blocks:
            traced = traced or bool(frames)
            blocks.append(_block(one, frames, candidate) + link)
        link = _DIRECT if one.__cause__ is not None else _MEANWHILE
    if not traced and _ours(problem):
        return str(problem)
    if not traced and not isinstance(problem, SyntaxError):
        return "".join(traceback.format_exception(problem))
    return "".join(reversed(blocks))


def refuses(problem: BaseException, candidate: str) -> bool:
    """Return whether the candidate's own host code raised an error, by `raise` or `assert`, and nothing led to it."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_filename != candidate or problem.__cause__ is not None:
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


def _chain(problem: BaseException) -> Iterator[tuple[BaseException, BaseException | None]]:
    """Yield an exception and what led to it, the latest first, each with its cause."""
    seen: set[int] = set()
    one: BaseException | None = problem
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        cause = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        yield one, cause
        one = cause


def _frames(problem: BaseException, candidate: str) -> list[str]:
    name = Path(candidate).name
    return [
        f'  File "{name}", line {frame.lineno}, in {frame.name}\n' + (f"    {frame.line}\n" if frame.line else "")
        for frame in traceback.extract_tb(problem.__traceback__)
        if frame.filename == candidate
    ]


def _block(problem: BaseException, frames: list[str], candidate: str) -> str:
    if len(frames) > _MOST_FRAMES:
        half = _MOST_FRAMES // 2
        frames = [*frames[:half], f"  … {len(frames) - 2 * half} frames left out …\n", *frames[-half:]]
    said = "".join(traceback.format_exception_only(problem)).replace(candidate, Path(candidate).name)
    said = said.removeprefix(f"{type(problem).__module__}.") if _ours(problem) else said
    return "".join(["Traceback (most recent call last):\n", *frames, said])


def _ours(problem: BaseException) -> bool:
    """Return whether it is an exception of this project's own, which says all there is to say."""
    return type(problem).__module__.startswith("arena.")
