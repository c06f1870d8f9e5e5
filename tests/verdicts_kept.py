"""Which shipped faults and honest styles have had the verdict that they must have: `tests/verdicts.json`.

    python -m tests.verdicts_kept     judge those that are new, or whose task or judge has changed, and keep them

A verdict is kept under a key of the candidate's text, of its task's content hash and of the code that judges.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from arena.checks.tasks.run import code_key
from arena.task.corpus.task_folder import load_task
from tests.candidates import HERE, candidates, name, task_of

KEPT = HERE / "verdicts.json"
JUDGING = "tests/judge/test_shipped_faults.py"
"""what the options of a judgement and the expected statuses are read by"""


def key(path: Path) -> str:
    """Return what a candidate's verdict depends on."""
    files = (path, HERE.parent / JUDGING)
    texts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256(" ".join((*texts, _hash_of(task_of(path)), code_key())).encode()).hexdigest()[:16]


@cache
def _hash_of(task: Path) -> str:
    return load_task(task).content_hash


@cache
def _kept() -> dict[str, str]:
    kept: dict[str, str] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return kept


def is_kept(path: Path) -> bool:
    """Return whether a candidate was judged rightly with the same text, task and judge."""
    return _kept().get(name(path)) == key(path)


def main() -> int:
    """Judge what is not kept, and keep each verdict that is right."""
    found = [*candidates("shipped_faults"), *candidates("honest_styles")]
    before = {name(path) for path in found if is_kept(path)}
    print(f"{len(before)} of {len(found)} shipped faults and honest styles were judged with this judge before")
    if len(before) == len(found):
        return 0
    jobs = str((os.cpu_count() or 1) + 1)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", jobs, "--junit-xml", str(results), JUDGING]
        code = subprocess.run(command, check=False, cwd=HERE.parent).returncode
        right = before | rightly_judged(results)
    verdicts = {name(path): key(path) for path in found if name(path) in right}
    KEPT.write_text(json.dumps(verdicts, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    return code


def rightly_judged(results: Path) -> set[str]:
    """Return the names of the candidates whose tests passed, from a file of results in the form of JUnit."""
    passed = [case for case in ElementTree.parse(results).iter("testcase") if not len(case)]
    return {case.get("name", "").partition("[")[2].rstrip("]") for case in passed}


if __name__ == "__main__":
    sys.exit(main())
