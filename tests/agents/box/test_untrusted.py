"""Folders that somebody else writes: links, pipes, large and vanishing files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from arena.agents.box.confined import read_candidate
from arena.processes.sandbox.usage import ENTRY_BYTES, UNMEASURABLE, deleted_bytes, folder_bytes
from arena.processes.scratch import clear


def test_a_candidate_is_read(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes(b"kernel")
    assert read_candidate(tmp_path, "kernel.py", 6) == b"kernel"
    (tmp_path / "empty").touch()
    assert read_candidate(tmp_path, "empty", 6) == b""


def test_what_is_too_large_or_missing_is_none(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes(b"kernel")
    assert read_candidate(tmp_path, "kernel.py", 5) is None
    assert read_candidate(tmp_path, "other.py", 5) is None
    assert read_candidate(tmp_path / "gone", "kernel.py", 5) is None


@pytest.mark.parametrize("name", ["", ".", "..", "../secret", "sub/kernel.py", "/etc/passwd", "a\0b"])
def test_only_a_name_is_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "workspace" / "sub").mkdir(parents=True)
    (tmp_path / "workspace" / "sub" / "kernel.py").write_text("kernel")
    assert read_candidate(tmp_path / "workspace", name, 1000) is None


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "heldout.yaml").write_text("secret")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "kernel.py").symlink_to(tmp_path / "heldout.yaml")
    assert read_candidate(workspace, "kernel.py", 1000) is None
    (tmp_path / "linked").symlink_to(tmp_path)
    assert read_candidate(tmp_path / "linked", "heldout.yaml", 1000) is None


def test_a_pipe_a_folder_or_a_device_is_none_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    done: list[bytes | None] = []
    thread = threading.Thread(target=lambda: done.append(read_candidate(tmp_path, "pipe", 10)), daemon=True)
    thread.start()
    thread.join(5)
    assert done == [None]
    assert read_candidate(tmp_path, "folder", 10) is None
    assert read_candidate(Path("/dev"), "zero", 10) is None


def test_bytes_are_counted_once_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "file").write_bytes(b"x" * 1_000_000)
    (tmp_path / "one" / "again").hardlink_to(tmp_path / "one" / "file")
    (tmp_path / "one" / "away").symlink_to("/usr")
    assert 1_000_000 <= folder_bytes([tmp_path / "one"]) < 1_100_000
    assert folder_bytes([tmp_path / "gone"]) == 0


def test_an_empty_file_counts_too(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert folder_bytes([tmp_path]) == 100 * ENTRY_BYTES


def test_a_tree_deeper_than_paths_reach_counts_as_too_much(tmp_path: Path) -> None:
    nest(tmp_path, 30, "d" * 200)
    assert folder_bytes([tmp_path]) == UNMEASURABLE
    clear(tmp_path)


def nest(top: Path, depth: int, name: str) -> None:
    """Make folders in one another, and a file in each."""
    folder = os.open(top, os.O_RDONLY)
    try:
        for _ in range(depth):
            os.mkdir(name, dir_fd=folder)
            deeper = os.open(name, os.O_RDONLY, dir_fd=folder)
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=deeper))
            os.close(folder)
            folder = deeper
    finally:
        os.close(folder)


def test_a_tree_of_any_depth_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "away").symlink_to(tmp_path)
    (tmp_path / "kept").touch()
    nest(tmp_path / "top", 3000, "a")
    (tmp_path / "top" / "shut").mkdir()
    nest(tmp_path / "top" / "shut", 3, "b")
    (tmp_path / "top" / "shut").chmod(0)
    clear(tmp_path / "top")
    assert list((tmp_path / "top").iterdir()) == [] and (tmp_path / "kept").exists()


def test_files_that_vanish_meanwhile_are_no_error(tmp_path: Path) -> None:
    ends = threading.Event()

    def churn() -> None:
        while not ends.is_set():
            for number in range(20):
                (tmp_path / f"d{number}").mkdir()
                (tmp_path / f"d{number}" / "x").write_bytes(b"x" * 5000)
            for number in range(20):
                (tmp_path / f"d{number}" / "x").unlink()
                (tmp_path / f"d{number}").rmdir()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert all(folder_bytes([tmp_path]) < UNMEASURABLE for _ in range(200))
    finally:
        ends.set()
        thread.join()


def test_a_deleted_file_counts_while_it_is_open(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(b"x" * 1_000_000)
        file.flush()
        assert deleted_bytes([os.getpid()], [tmp_path]) < 1_000_000
        (tmp_path / "file").unlink()
        assert deleted_bytes([os.getpid()], [tmp_path]) >= 1_000_000
