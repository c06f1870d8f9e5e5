"""First on `PYTHONPATH`: a clock on the wall that jumps by up to a day, back and forth, whenever it is read."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

_honest = time.time
_steps = itertools.cycle([0.0, 86400.0, -86400.0, 3600.0, -7.0])


def _stepped() -> float:
    return _honest() + next(_steps)


time.time = _stepped
if "ARENA_STEPPED" in os.environ:
    Path(os.environ["ARENA_STEPPED"], str(os.getpid())).touch()
