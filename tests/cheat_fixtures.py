"""What the files under `tests/cheats/` say of themselves, and the table of cheats that they belong to.

A file begins with a docstring or comment: `expect: STATUS [or STATUS][, emulated: STATUS]. How it works (cheat 4).`
On lines of their own may follow `Not caught yet[ on the CPU]: why.` and `Means nothing on a GPU: why.`; a first line
may end in `With held-out cases.`, and the status is then what the last gate says of these. Files named `honest*` are
right, unusual, and must pass.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

import yaml

from arena.results.verdict import Status
from tests.candidates import HERE, candidates

TABLE = HERE / "cheats" / "table.yaml"
_HEADER = re.compile(r"expect: (\w+(?: or \w+)*)(?:, emulated: (\w+(?: or \w+)*))?\. (.*)")
_EXCUSE = re.compile(r"Not caught yet(?: on the (CPU|GPU))?: (.+)")
_NOTHING = re.compile(r"Means nothing on (?:the|a) (CPU|GPU): (.+?)\.?$", re.M)


@dataclass(frozen=True)
class CheatFixture:
    """One candidate file. Reasons by platform, `CPU` and `GPU`: why it is not caught there, or means nothing there."""

    path: Path
    expected: dict[str, tuple[Status, ...]]
    how: str
    cheats: tuple[int, ...]
    heldout: bool
    uncaught: dict[str, str]
    meaningless: dict[str, str]

    @property
    def honest(self) -> bool:
        """Whether it is no cheat at all."""
        return self.path.stem.startswith(("honest", "not_capturable"))


@dataclass(frozen=True)
class Entry:
    """One row of the table: a cheat, what stops it, and the tests of it that are not candidates."""

    number: int
    cheat: str
    defence: str
    tests: tuple[str, ...] = ()
    limit: str = ""
    """what of it is not caught"""


def cheat_fixtures() -> list[CheatFixture]:
    """Every file of the corpus."""
    return [read(path) for path in candidates("cheats")]


def read(path: Path) -> CheatFixture:
    """What a file says of itself; `ValueError` where it does not say what to expect."""
    text = _said(path)
    found = _HEADER.match(text)
    if not found:
        raise ValueError(f"{path} does not begin with `expect: STATUS. How it works.`")
    status = _statuses(found.group(1))
    emulated = _statuses(found.group(2)) if found.group(2) else status
    uncaught: dict[str, str] = {}
    for where, why in _EXCUSE.findall(text):
        uncaught.update(dict.fromkeys([where] if where else ["CPU", "GPU"], why.rstrip(".")))
    return CheatFixture(
        path=path,
        expected={"CPU": emulated, "GPU": status},
        how=re.sub(r" (With held-out cases|Means nothing on .*)\.$", "", found.group(3).strip()),
        cheats=_numbers(found.group(3)),
        heldout="With held-out cases." in text,
        uncaught=uncaught,
        meaningless=dict(_NOTHING.findall(text)),
    )


def table() -> list[Entry]:
    """The rows of `tests/cheats/table.yaml`, by number."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return [Entry(number, **{**row, "tests": tuple(row.get("tests", ()))}) for number, row in rows.items()]


def digest(path: Path) -> str:
    """Which program a result is of: the file without what it says of itself, and the kernel it is built around."""
    kernel = path.with_name(f"_kernel{path.suffix}")
    return hashlib.sha256(_body(path).encode() + kernel.read_bytes()).hexdigest()[:16]


def _body(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text.split('"""', 2)[2]
    return "\n".join(dropwhile(lambda line: line.startswith("// ") and line != "// <kernel>", text.splitlines()))


def _statuses(said: str) -> tuple[Status, ...]:
    return tuple(Status(status) for status in said.split(" or "))


def _said(path: Path) -> str:
    """The docstring, or the comment lines, that a file begins with."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text.split('"""')[1]
    lines = text.split("// <kernel>")[0].splitlines()
    return "\n".join(line[3:] for line in lines if line.startswith("// "))


def _numbers(how: str) -> tuple[int, ...]:
    cited = re.search(r"\(cheats? ([^)]*)\)", how)
    return tuple(int(number) for number in re.findall(r"\d+", cited.group(1))) if cited else ()
