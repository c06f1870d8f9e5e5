"""A run of three scripted agents over twelve small tasks with a judge that is a fake: `python -m … TASKS RUN`.

Not a test: `test_resume.py` starts it, kills it, and starts it again.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from arena.agents.base import AgentSpec
from arena.results.record import Trial
from arena.runs import runner
from arena.runs.config import RunConfig
from arena.runs.service.judge_pool import JudgePool
from tests.fakes import Timing, planned

SPEEDS = {"...": 1.0, "slow": 0.5, "fast": 2.0, "faster": 4.0}
STEADY = """
import subprocess, pathlib
for word in ("slow", "fast"):
    pathlib.Path("kernel.py").write_text("# " + word)
    print(subprocess.run(["./evaluate"], capture_output=True, text=True).stdout, flush=True)
"""
REGRETTING = """
import subprocess, pathlib
pathlib.Path("kernel.py").write_text("# faster")
subprocess.run(["./evaluate", "--json"])
pathlib.Path("kernel.py").write_text("# WRONG")
subprocess.run(["./evaluate"])
"""
LIMITS = {"wall_clock_s": 60, "evaluations": 3}
IDLE = "print('nothing to improve')"
SCRIPTS = {"steady": STEADY, "regretting": REGRETTING, "idle": IDLE}


@dataclass
class Counting(runner.Watcher):
    """Watches and says how many trials are done, for whoever waits to kill the run."""

    done: int = 0

    def planned(self, total: int, recorded: int) -> None:
        self.done = recorded

    def finished(self, trial: Trial) -> None:
        self.done += 1
        sys.stderr.write(f"{self.done}\n")
        sys.stderr.flush()

    def noted(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


def main(tasks: Path, folder: Path) -> None:
    """Run, or go on with a run."""
    agents = tuple(
        AgentSpec(name, "command", command=(sys.executable, "-c", script), limits=LIMITS)
        for name, script in SCRIPTS.items()
    )
    config = RunConfig(name="scripted", tasks=("*",), agents=agents, attempts=2, jobs=2)
    runner.run(planned(config, tasks), folder, JudgePool([Timing(speeds=SPEEDS)]), Counting())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
