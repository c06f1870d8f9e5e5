"""Candidates kept as files: what they are built around is `_kernel.py` or `_kernel.hip` of `tests/cheats/<task>/`."""

from __future__ import annotations

import re
from pathlib import Path

import arena
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.task.corpus.task_folder import TASKS

HERE = Path(__file__).parent
# What an attacker knows who has read the code: where things lie that are no business of a candidate's.
_PLACES = {"@TASKS@": TASKS, "@ARENA@": Path(arena.__file__).parent, "@CACHE@": default_cache_root()}
CORPORA = (TASKS, *sorted(TASKS.parent.glob("corpora/*")))
TASK_OF = {"rms_norm": "triton2triton/normalization/rms_norm", "softmax": "hip2hip/modules/softmax"}


def candidates(corpus: str) -> list[Path]:
    """The files of a corpus, by task."""
    found = (HERE / corpus).glob("*/*")
    return sorted(path for path in found if path.suffix in (".py", ".hip") and path.stem != "_kernel")


def assembled(path: Path, folder: Path) -> Path:
    """The candidate as it is handed in: the line `<kernel>` replaced by the kernel."""
    kernel = (HERE / "cheats" / path.parent.name / f"_kernel{path.suffix}").read_text(encoding="utf-8")
    text = re.sub(r"^(#|//) <kernel>$", lambda _: kernel, path.read_text(encoding="utf-8"), flags=re.M)
    for mark, target in _PLACES.items():
        text = text.replace(mark, str(target))
    candidate = folder / path.name
    candidate.write_text(text, encoding="utf-8")
    return candidate


def name(path: Path) -> str:
    """For test ids."""
    return f"{path.parent.name}-{path.stem}"


def task_of(path: Path) -> Path:
    """The task that a candidate is for: the folder's name is that of one task for Triton, or of HIP's own two."""
    language = "*2triton" if path.suffix == ".py" else "hip2hip"
    (found,) = (task for corpus in CORPORA for task in corpus.glob(f"{language}/*/{path.parent.name}"))
    return found
