"""Judges on nodes that need no device, and a run of them as a program that can be killed."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from arena.agents.base import AgentSpec
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.executors.base import JudgesWanted
from arena.runs.executors.ray_cluster import RayExecutor
from arena.runs.executors.ray_judge import JudgeActor
from arena.runs.service.judge_pool import Evaluator
from tests.fakes import HERE, FakeEvaluator

CLOSED = replace(HERE, isolation="session+network+mount", versions={"torch": "2.13"})
LOG, ENVIRONMENT = "TEST_EVALUATIONS", "TEST_ENVIRONMENT"


class Noting(FakeEvaluator):
    """Takes 0.2 s, and writes down where and for which driver's job each evaluation was begun."""

    def begin(self) -> None:
        if log := os.environ.get(LOG):
            import ray

            job = ray.get_runtime_context().get_job_id()
            with Path(log).open("a", encoding="utf-8") as file:
                file.write(f"{os.environ.get('TEST_NODE', 'head')} {job}\n")
        time.sleep(0.2)


class FakeActor(JudgeActor):
    """An actor without a judge process. A node's variable changes what it says of its environment."""

    def start_judge(self) -> Evaluator:
        changes = json.loads(os.environ.get(ENVIRONMENT, "{}"))
        if self.platform != "cpu":
            changes["device"] = replace(CLOSED.device, platform=self.platform, name=f"a {self.platform} device")
        return Noting(environment=replace(CLOSED, **changes))

    def start_builder(self) -> None:
        return None


class FakeExecutor(RayExecutor):
    """Ray, with judges that need no device."""

    actor = FakeActor


def plan(tasks: Path, attempts: int, platforms: tuple[tuple[str, str], ...] = ()) -> runner.RunPlan:
    """Plan a run of the baseline and of wrong kernels."""
    agents = (AgentSpec("noop", "noop"), AgentSpec("wrong", "replay", tasks.parent / "wrong"))
    config = RunConfig(
        name="demo", tasks=("*",), agents=agents, platform="cpu", attempts=attempts, corpora=(tasks,), path="d.yaml"
    )
    return runner.plan_run(replace(config, platforms=platforms))


def run(address: str, tasks: Path, folder: Path, attempts: int, platform: str = "cpu") -> records.RunRecords:
    """Run on the cluster at this address."""
    planned = plan(tasks, attempts, (("*", platform),))
    wanted = JudgesWanted(platform, corpora=(tasks,), tasks={name: task.path for name, task in planned.tasks.items()})
    with FakeExecutor(address).judges(wanted) as judges:
        return runner.run(planned, folder, {platform: judges})


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
