"""Episodes: rewards, limits, what ends them, and that held-out cases are only ever counted."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from arena.corpus.task_folder import load_task
from arena.errors import InfrastructureError
from arena.judge.messages import Options
from arena.model.record import Evaluation, Split
from arena.model.session import Limits
from arena.model.task import Task
from arena.model.verdict import Stage, Status, Verdict
from arena.service.episode import EpisodeOver, Episodes, NoVerdict, StopWatch
from arena.service.episode_view import final_of
from arena.service.judge_pool import JudgePool
from tests.corpus.folders import write_task
from tests.fakes import Timing
from tests.service import examples

SPEEDS = {"slow": 0.5, "same": 1.0, "fast": 2.0}


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(write_task(tmp_path / "tasks"))


def begun(task: Task, *, evaluations: int = 10, minutes: float = 10.0, attempts: int = 1) -> tuple[Episodes, Timing]:
    judge = Timing(speeds=SPEEDS)
    limits = Limits(wall_clock_s=minutes * 60, evaluations=evaluations)
    return Episodes(task, JudgePool([judge]), Options(), limits, attempts), judge


def test_what_a_client_is_told(task: Task) -> None:
    episodes, _ = begun(task, evaluations=3, minutes=2.5, attempts=2)
    view = episodes.describe()
    assert (view.task, view.task_type, view.kernel_file) == (task.id, "triton2triton", "kernel.py")
    assert view.signature == "def scale(x, bias, alpha, flag, y):"
    assert view.kernel == (task.path / "kernel.py").read_text(encoding="utf-8")
    assert [case.sizes for case in view.seen] == [case.label for case in task.seen]
    assert (view.evaluations, view.minutes, view.attempt, view.attempts) == (3, 2.5, 1, 2)
    assert {"kernel.py", "reference.py", "seen.yaml"} <= set(view.files) and "TASK.md" not in view.files
    assert "# scale" in view.text and view.rules.startswith("- ") and "##" not in view.rules
    told = msgspec.json.encode(view).decode()
    assert "heldout.yaml" not in told and not any(case.id in told for case in task.heldout)


def test_rewards_of_steps(task: Task) -> None:
    episodes, judge = begun(task)
    assert [episodes.evaluate(name.encode()).reward for name in SPEEDS] == [-0.5, 0.0, 1.0]
    wrong = episodes.evaluate(b"WRONG")
    assert (wrong.reward, wrong.done, wrong.evaluation, wrong.left) == (-2.0, False, 4, 6)
    assert msgspec.json.decode(wrong.result)["status"] == "wrong_result"
    assert {options.heldout for options in judge.options} == {False}


def test_after_the_last_evaluation_only_finish_is_left(task: Task) -> None:
    episodes, judge = begun(task, evaluations=2)
    assert [episodes.evaluate(name).done for name in (b"fast", b"slow")] == [False, True]
    with pytest.raises(EpisodeOver, match="all 2 evaluations are used up: only /finish"):
        episodes.evaluate(b"same")
    final = episodes.finish()
    assert (final.status, final.reward, final.done) == (Status.PASSED, 1.0, True)
    assert judge.options[-1].heldout, "the last word is on held-out cases, too"
    for call in (episodes.finish, lambda: episodes.evaluate(b"same")):
        with pytest.raises(EpisodeOver, match="the episode is finished"):
            call()
    assert len(judge.options) == 3


def test_a_kernel_given_to_finish_counts_even_if_another_was_faster(task: Task) -> None:
    episodes, _ = begun(task)
    episodes.evaluate(b"fast")
    assert episodes.finish(b"slow").reward == -0.5


def test_finishing_with_nothing(task: Task) -> None:
    episodes, judge = begun(task)
    episodes.evaluate(b"WRONG")
    final = episodes.finish()
    assert (final.status, final.reward, final.seen, final.heldout) == (Status.NOTHING_SUBMITTED, -6.0, None, None)
    assert len(judge.options) == 1


def test_a_harness_that_fails_ends_nothing(task: Task) -> None:
    episodes, judge = begun(task, evaluations=1)
    judge.failing.add("scale")
    with pytest.raises(NoVerdict, match="not counted"):
        episodes.evaluate(b"fast")
    with pytest.raises(NoVerdict, match="the episode goes on"):
        episodes.finish(b"fast")
    judge.failing.clear()
    assert episodes.evaluate(b"fast").left == 0
    assert episodes.finish().reward == 1.0


def test_minutes_run_out(task: Task) -> None:
    episodes, _ = begun(task, minutes=1e-9)
    with pytest.raises(EpisodeOver, match="minutes are over"):
        episodes.evaluate(b"fast")
    assert episodes.finish(b"fast").reward == 1.0


def test_attempts_one_after_the_other(task: Task) -> None:
    episodes, _ = begun(task, evaluations=1, attempts=2)
    episodes.evaluate(b"fast")
    assert episodes.finish().attempt == 1
    assert episodes.reset().attempt == 2
    assert episodes.finish().status is Status.NOTHING_SUBMITTED, "the best of an earlier attempt is not this one's"
    with pytest.raises(EpisodeOver, match=r"all attempts are used up \(2\)"):
        episodes.reset()
    assert [final.attempt for final in episodes.finals] == [1, 2]


def test_an_attempt_that_is_left_is_over(task: Task) -> None:
    episodes, judge = begun(task, attempts=2)
    first = episodes._current
    episodes.reset()
    with pytest.raises(EpisodeOver, match="cancelled"):
        first.evaluate(b"fast")
    assert not judge.options


class Endless(Timing):
    """Never done, until it is abandoned."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.abandoned = threading.Event(), threading.Event()

    def begin(self) -> None:
        self.begun.set()
        assert self.abandoned.wait(10)
        raise InfrastructureError("the judge has ended")

    def kill(self) -> None:
        self.abandoned.set()


def test_closing_frees_whoever_waits(task: Task) -> None:
    judge, problems = Endless(), list[NoVerdict]()
    episodes = Episodes(task, JudgePool([judge]), Options(), Limits())

    def ask() -> None:
        try:
            episodes.evaluate(b"fast")
        except NoVerdict as problem:
            problems.append(problem)

    thread = threading.Thread(target=ask)
    thread.start()
    assert judge.begun.wait(10)
    episodes.close()
    thread.join(10)
    assert "the judge has ended" in str(problems[0])
    with pytest.raises(EpisodeOver, match="cancelled"):
        episodes.evaluate(b"fast")


def heldout_results() -> Evaluation:
    """Two seen cases passed; of three held-out ones, two did, and one has a telling label."""
    seen = examples.GOOD.split(Split.SEEN)
    unseen = [replace(case, case=f"heldout-{n:02d}", split=Split.HELDOUT, kind="edge") for n, case in enumerate(seen)]
    lost = examples.failed(9, "M=31337 N=4099 float16", Status.WRONG_RESULT, "at M=31337")
    unseen.append(replace(lost, case="heldout-09", split=Split.HELDOUT, kind="alignment"))
    verdict = Verdict(Stage.HELDOUT, Status.WRONG_RESULT, "M=31337 N=4099 float16: y: error")
    return replace(examples.GOOD, cases=(*seen, *unseen), verdicts=(*examples.GOOD.verdicts, verdict))


def test_heldout_cases_are_counted_and_never_named() -> None:
    final = final_of(heldout_results())
    assert (final.status, final.detail) == (Status.PASSED, "")
    assert final.heldout is not None and (final.heldout.cases, final.heldout.passed) == (3, 2)
    assert final.heldout.speedup == pytest.approx(final.speedup)
    told = msgspec.json.encode(final).decode()
    assert "31337" not in told and "alignment" not in told and "heldout-" not in told
    assert "2 of 3 held-out cases passed" in final.text


@pytest.mark.parametrize(
    ("stage", "status", "detail", "reward"),
    [
        (Stage.COMPILE, Status.COMPILE_ERROR, "", -5.0),
        (Stage.CORRECTNESS, Status.WRONG_RESULT, "of a seen case", -2.0),
        (Stage.PERFORMANCE, Status.IMPLAUSIBLE, "of a seen case", -2.0),
    ],
)
def test_details_of_failures_on_seen_cases_only(stage: Stage, status: Status, detail: str, reward: float) -> None:
    final = final_of(examples.evaluation(fails=Verdict(stage, status, "of a seen case")))
    assert (final.status, final.detail, final.reward, final.heldout) == (status, detail, reward, None)


def test_a_stop_watch_stands_still_while_it_is_paused() -> None:
    watch = StopWatch()
    watch.pause()
    watch.pause()
    stood = watch.active_s()
    assert watch.active_s() == stood
    watch.resume()
    assert watch.active_s() == stood, "paused twice, resumed once"
    watch.resume()
    threading.Event().wait(0.01)
    assert watch.active_s() > stood
