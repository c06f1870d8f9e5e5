"""Built-in agents: they copy a file into the workspace, or say why they cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.agents import kinds, make_agent
from arena.agents.base import AgentSpec, Submission, Workspace
from arena.errors import UsageError
from arena.task.corpus.task_folder import load_task
from tests.fakes import HERE, FakeService
from tests.task.corpus.folders import write_task


def workspace(root: Path, place: str = "triton2triton/suite/scale", attempt: int = 1) -> Workspace:
    task = load_task(write_task(root / "tasks", place))
    (root / "work").mkdir()
    return Workspace(root / "work", task, attempt, HERE, root / "transcript")


def submitted(submission: Submission) -> str:
    assert submission.candidate is not None
    return submission.candidate.read_text(encoding="utf-8")


def test_noop_hands_in_the_starting_kernel(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    start = place.task.baseline_kernel
    assert start is not None
    submission = make_agent(AgentSpec("calm", "noop")).work(place, FakeService())
    assert submission.candidate == place.candidate == tmp_path / "work" / "kernel.py"
    assert submitted(submission) == start.read_text(encoding="utf-8")


def test_noop_translates_nothing(tmp_path: Path) -> None:
    submission = make_agent(AgentSpec("noop", "noop")).work(workspace(tmp_path, "torch2hip/suite/scale"), FakeService())
    assert submission == Submission(None, "a torch2hip task has no baseline kernel to hand in")


def test_expert_hands_in_the_expert_where_there_is_one(tmp_path: Path) -> None:
    place = workspace(tmp_path, "torch2hip/suite/scale")
    expert = make_agent(AgentSpec("expert", "expert"))
    assert expert.work(place, FakeService()) == Submission(None, "the task has no expert")
    (place.task.path / "expert.hip").write_text("// fast", encoding="utf-8")
    submission = expert.work(place, FakeService())
    assert submission.candidate == tmp_path / "work" / "kernel.hip"
    assert submitted(submission) == "// fast"


def test_replay_prefers_the_file_of_the_attempt(tmp_path: Path) -> None:
    place = workspace(tmp_path, attempt=2)
    folder = tmp_path / "candidates"
    base = folder / place.task.id
    (base / "2").mkdir(parents=True)
    replay = make_agent(AgentSpec("mine", "replay", folder))
    assert replay.work(place, FakeService()) == Submission(
        None, "candidates/triton2triton/suite/scale holds no kernel.py"
    )
    (base / "kernel.py").write_text("# for all", encoding="utf-8")
    assert submitted(replay.work(place, FakeService())) == "# for all"
    (base / "2" / "kernel.py").write_text("# second", encoding="utf-8")
    assert submitted(replay.work(place, FakeService())) == "# second"
    assert submitted(replay.work(replace(place, attempt=1), FakeService())) == "# for all"


def test_names_and_kinds(tmp_path: Path) -> None:
    assert list(kinds()) == ["noop", "expert", "replay"] and all(kinds().values())
    assert make_agent(AgentSpec("mine", "replay", tmp_path)).name == "mine"


def test_what_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError,
        match=r"agent x: unknown kind 'wizard'; expected .* noop, expert, replay",
    ):
        make_agent(AgentSpec("x", "wizard"))
    with pytest.raises(UsageError, match="agent x: kind `replay` needs `folder`"):
        make_agent(AgentSpec("x", "replay"))
    with pytest.raises(UsageError, match="is not a folder of candidates"):
        make_agent(AgentSpec("x", "replay", tmp_path / "missing"))
