"""In a box `python3` and `python` are the interpreter that the judge uses, whatever else is on PATH."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from arena.agents.box import BoxPlan
from tests.agents.box import boxes

ASKED = "import sys; print(sys.executable, sys.prefix)"


@pytest.fixture
def crowded(plan: BoxPlan, place: Path) -> BoxPlan:
    """A plan that shows a folder with other programs of these names, as a toolchain of an agent's may hold."""
    for folder in (place / "toolchain" / "bin", place / "toolchain" / "node_modules" / ".bin"):
        folder.mkdir(parents=True)
        for name in ("python", "python3"):
            (folder / name).write_text("#!/bin/sh\necho another\n", encoding="utf-8")
            (folder / name).chmod(0o755)
    place.chmod(0o755)
    return replace(plan, show=(place / "toolchain",))


@pytest.mark.parametrize("name", ["python3", "python"])
def test_both_names_are_the_interpreter(
    kind: str, crowded: BoxPlan, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = boxes.python(kind)
    monkeypatch.setenv("PATH", f"{crowded.show[0]}/bin:/usr/local/bin:/usr/bin:/bin")
    outcome = boxes.run(kind, crowded, ["sh", "-c", f"{name} -c '{ASKED}'; command -v {name}"])
    said, path = outcome.stdout.splitlines()
    prefix = sys.prefix if wanted == sys.executable else ""
    assert said.startswith(f"{wanted} {prefix}"), outcome
    assert path.startswith("/run/programs" if kind == "bubblewrap" else "/") and path.endswith(f"programs/{name}")
    assert boxes.run(kind, crowded, [name, "-c", "print(6 * 7)"]).stdout == "42\n"


@pytest.mark.slow(but=["bubblewrap-python3"])
@pytest.mark.parametrize("name", ["python3", "python"])
def test_the_interpreter_has_pytorch_and_triton(kind: str, crowded: BoxPlan, name: str) -> None:
    if boxes.python(kind) != sys.executable:
        pytest.skip("the agent's user may not read this Python")
    outcome = boxes.run(kind, crowded, ["sh", "-c", f"{name} -c 'import torch, triton; print(triton.__name__)'"])
    assert outcome.stdout == "triton\n", outcome.stderr
