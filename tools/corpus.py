"""Check every task of every corpus here on the CPU platform that has changed, or whose judge has, since it last passed.

    python tools/corpus.py            check what has changed, and keep what passed in tests/corpus.json
    python tools/corpus.py --all      check every task

A result is kept under a key of the task's content hash, of the level of its corpus and of the code that checks
(`arena.checks.tasks.run.code_key`).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from arena.checks.tasks.run import code_key
from arena.errors import FileError
from arena.processes.python_child import python_module
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.level import level_of
from arena.task.corpus.task_folder import TASKS

KEPT = Path(__file__).resolve().parents[1] / "tests" / "corpus.json"
CORPORA = (TASKS, *sorted(TASKS.parent.glob("corpora/*")))


def keys() -> dict[str, str]:
    """Return the key of every task; a malformed task has one that is never kept."""
    corpora, found = open_corpora(CORPORA), {}
    for name in corpora.ids:
        try:
            task = corpora.load(name)
            content = f"{task.content_hash} {level_of(task)}"
        except FileError:
            content = ""
        found[name] = hashlib.sha256(f"{content} {code_key()}".encode()).hexdigest()[:16] if content else ""
    return found


def due(now: Mapping[str, str], kept: Mapping[str, str]) -> list[str]:
    """Return the tasks without a kept result of the same key."""
    return [name for name, key in now.items() if not key or kept.get(name) != key]


def main() -> int:
    """Check what is due; keep the keys when all of it passed."""
    now = keys()
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() and "--all" not in sys.argv[1:] else {}
    changed = due(now, kept)
    print(f"{len(now) - len(changed)} of {len(now)} tasks passed before, and neither they nor the judge have changed")
    if not changed:
        return 0
    again = ["--resume"] if "--all" not in sys.argv[1:] else []  # what passed beside a task that failed
    folders = [text for folder in CORPORA for text in ("--tasks-dir", str(folder))]
    command = python_module("arena", "tasks", "check", *folders, "--platform", "cpu", *again, *changed)
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        KEPT.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
