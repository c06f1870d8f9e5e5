"""A run in which a faulty candidate is judged first and an honest one after it, by the same judge."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from arena.agents.base import AgentSpec
from arena.judge.process.messages import Progress
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.service.judge_pool import Evaluator, JudgePool
from arena.task.corpus.task_folder import TASKS
from tests.fakes import planned

Setting = int | float | tuple[str, ...]
RMS_NORM = "triton2triton/normalization/rms_norm"
SOFTMAX = "hip2hip/modules/softmax"
OPTIONS: dict[str, Setting] = {
    "heldout": False,
    "seeds": 1,
    "max_work": 2e4,
    "timing_budget_s": 0.02,
    "call_timeout_s": 20.0,
}


@dataclass
class Notes(runner.Watcher):
    """Watches, and does something at each step of an evaluation."""

    at_progress: Callable[[runner.TrialKey, Progress], None] = lambda trial, progress: None
    said: list[str] = field(default_factory=list)
    plans: list[tuple[int, int]] = field(default_factory=list)

    def planned(self, total: int, recorded: int) -> None:
        self.plans.append((total, recorded))

    def started(self, trial: runner.TrialKey) -> None:
        """Nothing to show."""

    def progress(self, trial: runner.TrialKey, progress: Progress) -> None:
        self.at_progress(trial, progress)

    def finished(self, trial: Trial) -> None:
        """Nothing to show."""

    def noted(self, text: str) -> None:
        self.said.append(text)


@dataclass(frozen=True)
class Faulty:
    """A run of one task for two agents: `faulty` hands in `kernel`, `noop` the starting kernel."""

    root: Path
    task: str
    kernel: str
    options: dict[str, Setting] = field(default_factory=dict)
    attempts: int = 1

    @property
    def folder(self) -> Path:
        return self.root / "runs" / "faults"

    def run(self, evaluator: Evaluator, notes: Notes | None = None) -> records.RunRecords:
        """Run it, or go on with it."""
        return runner.run(self.plan(), self.folder, JudgePool([evaluator]), notes or Notes())

    def plan(self) -> runner.RunPlan:
        tasks = self.root / "tasks"
        if not tasks.exists():
            shutil.copytree(TASKS / self.task, tasks / self.task)
            suffix = ".hip" if self.task == SOFTMAX else ".py"
            handed_in = self.root / "faulty" / self.task / f"kernel{suffix}"
            handed_in.parent.mkdir(parents=True)
            handed_in.write_text(self.kernel, encoding="utf-8")
        agents = (AgentSpec("faulty", "replay", self.root / "faulty"), AgentSpec("noop", "noop"))
        config = RunConfig(
            name="faults",
            tasks=("*",),
            agents=agents,
            path="faults.yaml",
            attempts=self.attempts,
            evaluation={**OPTIONS, **self.options},
        )
        return planned(config, tasks)


def start(task: str) -> str:
    """The starting kernel, as text."""
    folder = TASKS / task
    return next(folder.glob("kernel.*")).read_text(encoding="utf-8")


def in_python(fault: str) -> str:
    """The Triton kernel of RMS norm, right but for lines that run before every call."""
    lines = "".join(f"    {line}\n" for line in fault.splitlines())
    return f"{start(RMS_NORM)}\n\nright = rms_norm\n\n\ndef rms_norm(*arguments):\n{lines}    right(*arguments)\n"


def in_hip(kernel_line: str) -> str:
    """The HIP kernel of softmax with a line in front of everything that each thread does."""
    text = start(SOFTMAX)
    first = "const int64_t start = "
    assert text.count(first) == 1
    return text.replace(first, f"{kernel_line}\n    {first}")


def unharmed(trial: Trial) -> bool:
    """Whether an honest kernel was found right. On a CPU that others use too, its timing may be in doubt."""
    doubtful = trial.environment.device.emulated and trial.status is Status.TIMING_MISMATCH
    return trial.status is Status.PASSED or doubtful


def check(run: records.RunRecords, status: Status, said: str = "") -> Trial:
    """The fault has the status it must have, the next trial passed, and there are as many records as trials."""
    assert run.missing == 0 and len(run.trials) == len(run.info.planned)
    faulty = [trial for trial in run.trials if trial.agent == "faulty"]
    honest = [trial for trial in run.trials if trial.agent == "noop"]
    assert [(trial.status, trial.detail) for trial in honest if not unharmed(trial)] == []
    for trial in faulty:
        if status is Status.PASSED:
            assert unharmed(trial), (trial.status, trial.detail)
            continue
        assert trial.status is status and said in trial.detail, (trial.status, trial.detail)
        assert trial.evaluation is None or trial.evaluation.seen_speedup is None
    return faulty[0]
