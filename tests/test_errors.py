"""What is written into records of a failure."""

from __future__ import annotations

from pathlib import Path

from arena.errors import FileError, what_was_raised
from arena.task.corpus.task_folder import load_task


def test_a_traceback_does_not_say_where_we_are_installed(tmp_path: Path) -> None:
    try:
        load_task(tmp_path)
    except FileError:
        said = what_was_raised()
    assert 'File "arena/task/corpus/task_folder.py", line ' in said
    assert str(Path(__file__).parents[1]) not in said.replace(__file__, "")
