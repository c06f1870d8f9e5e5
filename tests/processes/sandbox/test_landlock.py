"""Landlock: what is allowed and what is not, in a child process; and how folders are named around hidden ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from arena.processes.flags import new_flags
from arena.processes.sandbox import landlock
from arena.processes.sandbox.landlock import without

_INSIDE = """
import json, os, sys
from arena.processes.sandbox import confinement
from arena.processes.sandbox.landlock import Allowed
from arena.processes.sandbox.seccomp import Strictness

read, write, listed = json.loads(sys.argv[1])
files = Allowed((*read, "/proc"), tuple(write), tuple(listed))
level = confinement.confine(confinement.Confinement(strictness=Strictness.PROGRAM, files=files))

def tried(attempt):
    try:
        attempt()
    except OSError as problem:
        return type(problem).__name__
    return ""

def opens(path, mode="r"):
    return tried(lambda: open(path, mode).close())

folder = sys.argv[2]
os.chdir(folder)
print(json.dumps({
    "level": level,
    "read": opens("read/file"),
    "write in read": opens("read/new", "w"),
    "read beside": opens("beside/file"),
    "write": opens("write/new", "w"),
    "rename": tried(lambda: os.rename("write/new", "write/inner/new")),
    "list": tried(lambda: os.listdir("listed")),
    "read in listed": opens("listed/file"),
    "parent's memory": opens(f"/proc/{os.getppid()}/mem"),
    "parent's flags": opens(f"/proc/{os.getppid()}/fd/{sys.argv[3]}", "r+b"),
    "parent's folder": tried(lambda: os.listdir(f"/proc/{os.getppid()}/root")),
    "signal parent": tried(lambda: os.kill(os.getppid(), 0)),
    "signal itself": tried(lambda: os.kill(os.getpid(), 0)),
}))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if not landlock.abi():
        pytest.skip("this kernel has no Landlock")
    top = tmp_path_factory.mktemp("landlock")
    for name in ("read", "write/inner", "beside", "listed"):
        (top / name).mkdir(parents=True)
        (top / name / "file").write_text("x")
    allowed = json.dumps([[str(top / "read"), str(top / "missing")], [str(top / "write")], [str(top / "listed")]])
    _, file = new_flags()
    done = subprocess.run(
        [sys.executable, "-c", _INSIDE, allowed, str(top), str(file)], capture_output=True, text=True, timeout=60
    )
    os.close(file)
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


def test_what_is_named_can_be_opened_and_nothing_else(said: dict[str, str]) -> None:
    assert f"landlock{landlock.abi()}" in said["level"]
    assert said["read"] == said["write"] == said["list"] == ""
    for what in ("write in read", "read beside", "read in listed"):
        assert said[what] == "PermissionError", what


def test_files_move_between_the_folders_that_can_be_written(said: dict[str, str]) -> None:
    if landlock.abi() < 2:
        pytest.skip("the first version of Landlock forbids it")
    assert said["rename"] == ""


def test_processes_outside_cannot_be_looked_into(said: dict[str, str]) -> None:
    assert said["parent's memory"] == said["parent's folder"] == said["parent's flags"] == "PermissionError"


def test_signals_stay_inside(said: dict[str, str]) -> None:
    if landlock.abi() < landlock.SIGNALS_ABI:
        pytest.skip("this version of Landlock does not know signals")
    assert said["signal parent"] == "PermissionError" and said["signal itself"] == ""


def test_a_kernel_without_landlock_is_said_to_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "machine", lambda: None)
    assert landlock.abi() == 0
    assert landlock.enter(landlock.Allowed()) == 0


def test_folders_are_named_around_hidden_ones(tmp_path: Path) -> None:
    for name in ("a/secret/x", "a/b", "a/c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "secret")
    found = without([str(tmp_path)], [str(tmp_path / "a" / "secret")])
    assert set(found.read) == {str(tmp_path / "a" / "b"), str(tmp_path / "a" / "c")}
    assert set(found.listed) == {str(tmp_path), str(tmp_path / "a")}


def test_nothing_is_shown_inside_a_hidden_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    found = without([str(tmp_path / "inner"), str(tmp_path)], [str(tmp_path)])
    assert found.read == found.listed == ()
