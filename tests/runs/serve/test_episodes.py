"""Episodes: rewards, limits, what ends them, what is on disk after each call, and going on after a restart."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from arena.errors import UsageError
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.runs import records
from arena.runs.serve.episode import EpisodeClock, EpisodeOver, NoVerdict
from arena.runs.serve.episodes import Busy, UnknownName
from arena.runs.serve.episodes import served as chosen_tasks
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.split import TaskSplit, tasks_of
from tests.runs.serve.serving import TASK, Judge, me, served


def test_rewards_of_steps_on_seen_cases(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, judge):
        one = episodes.begin(me(episodes), "scale", "client", None, None).episode
        steps = [episodes.evaluate(me(episodes), one, name, False) for name in (b"slow", b"same", b"fast")]
        assert [step.reward for step in steps] == [-0.5, 0.0, 1.0]
        assert [step.bounded_reward for step in steps] == [0.0, 0.0, 1 - 1.05 / 2]
        wrong = episodes.evaluate(me(episodes), one, b"WRONG", True)
    assert (wrong.reward, wrong.done, wrong.evaluation, wrong.left) == (-2.0, False, 4, 6)
    assert msgspec.json.decode(wrong.result)["status"] == "wrong_result"
    assert {options.heldout for options in judge.options} == {False}
    assert [options.profile for options in judge.options] == [False] * 3 + [True]


def test_after_the_last_evaluation_only_finish_is_left(tmp_path: Path) -> None:
    with served(tmp_path, evaluations=2) as (episodes, judge):
        one = episodes.begin(me(episodes), TASK, "client", None, None).episode
        assert [episodes.evaluate(me(episodes), one, name, False).done for name in (b"fast", b"slow")] == [
            False,
            True,
        ]
        with pytest.raises(EpisodeOver, match="all 2 evaluations are used up: only /finish"):
            episodes.evaluate(me(episodes), one, b"same", False)
        final = episodes.finish(me(episodes), one, None)
        assert (final.stage_status, final.reward, final.done) == (Status.PASSED, 1.0, True)
        assert final.bounded_reward == 1 - 1.05 / 2
        assert judge.options[-1].heldout, "the last word is on held-out cases, too"
        for call in (
            lambda: episodes.finish(me(episodes), one, None),
            lambda: episodes.evaluate(me(episodes), one, b"same", False),
        ):
            with pytest.raises(EpisodeOver, match="the episode is finished"):
                call()
        assert len(judge.options) == 3 and episodes.status(me(episodes), one).finished


def test_a_finished_episode_is_a_trial_that_reports_read(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, _):
        one = episodes.begin(me(episodes), "scale", "policy-7", 11, None)
        episodes.evaluate(me(episodes), one.episode, b"slow", False)
        episodes.finish(me(episodes), one.episode, b"fast")
        episodes.finish(me(episodes), episodes.begin(me(episodes), "scale_too", "policy-7", 11, None).episode, None)
        episodes.begin(me(episodes), "scale", "policy-7", 12, None)
    run = records.read_run(tmp_path / "run")
    assert run.info.planned == tuple(trial.key for trial in run.trials) and not run.missing
    assert [(trial.key, trial.status) for trial in run.trials] == [
        (("policy-7", TASK, 1), Status.PASSED),
        (("policy-7", TASK + "_too", 1), Status.NOTHING_SUBMITTED),
    ]
    first = run.trials[0]
    assert first.evaluation is not None and first.evaluation.seen_speedup == 2.0
    assert first.session is not None and [one.speedup for one in first.session.evaluations] == [0.5]
    assert "seed 11" in first.session.detail
    submitted = records.submission_folder(run.path, *first.key) / "kernel.py"
    assert submitted.read_bytes() == b"fast"


def test_a_seed_names_an_episode_and_nothing_else(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, _):
        first = episodes.begin(me(episodes), "scale", "a", 3, None)
        assert episodes.begin(me(episodes), "scale", "a", 3, None) == first, (
            "an answer that was lost is asked for again"
        )
        named: list[tuple[str, int | None]] = [("a", 4), ("b", 3), ("a", None), ("a", None)]
        others = [episodes.begin(me(episodes), "scale", agent, seed, None) for agent, seed in named]
        assert len({first.episode, *(other.episode for other in others)}) == 5
        assert [other.attempt for other in others] == [2, 1, 3, 4]


def test_steps_may_take_less_effort_than_the_final_verdict(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, judge):
        one = episodes.begin(me(episodes), "scale", "client", None, Effort.CORRECTNESS)
        step = episodes.evaluate(me(episodes), one.episode, b"fast", False)
        assert (step.reward, one.effort) == (0.0, "correctness") and "nothing was timed" in step.text
        assert episodes.finish(me(episodes), one.episode, None).reward == 1.0
    assert [options.effort for options in judge.options] == [Effort.CORRECTNESS, Effort.FULL]


def test_a_harness_that_fails_ends_nothing(tmp_path: Path) -> None:
    with served(tmp_path, evaluations=1) as (episodes, judge):
        one = episodes.begin(me(episodes), "scale", "client", None, None).episode
        judge.failing.add("scale")
        with pytest.raises(NoVerdict, match="not counted"):
            episodes.evaluate(me(episodes), one, b"fast", False)
        with pytest.raises(NoVerdict, match="the episode goes on"):
            episodes.finish(me(episodes), one, b"fast")
        judge.failing.clear()
        assert episodes.evaluate(me(episodes), one, b"fast", False).left == 0
        assert episodes.finish(me(episodes), one, None).reward == 1.0


def test_minutes_begin_with_the_first_request(tmp_path: Path) -> None:
    with served(tmp_path, minutes=1e-9) as (episodes, _):
        one = episodes.begin(me(episodes), "scale", "client", None, None).episode
        assert episodes.evaluate(me(episodes), one, b"fast", False).evaluation == 1
        with pytest.raises(EpisodeOver, match="minutes are over"):
            episodes.evaluate(me(episodes), one, b"fast", False)
        assert episodes.finish(me(episodes), one, b"fast").reward == 1.0


def test_a_clock_stands_still_while_the_judge_works() -> None:
    clock = EpisodeClock(5.0)
    assert clock.active_s() == clock.active_s() == 5.0, "not begun"
    with clock.stopped():
        assert clock.active_s() == clock.active_s() == 5.0
    threading.Event().wait(0.01)
    assert clock.active_s() > 5.005


def test_unknown_names_are_said(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, _):
        for call in (
            lambda: episodes.begin(me(episodes), "softmax", "a", None, None),
            lambda: episodes.status(me(episodes), "no"),
            lambda: episodes.evaluate(me(episodes), "../run", b"fast", False),
        ):
            with pytest.raises(UnknownName, match=r"softmax|'no'|'\.\./run'"):
                call()


def test_a_restart_goes_on_with_every_episode(tmp_path: Path) -> None:
    with served(tmp_path, evaluations=3) as (episodes, _):
        done = episodes.begin(me(episodes), "scale", "a", 1, None).episode
        episodes.finish(me(episodes), done, b"same")
        unfinished = episodes.begin(me(episodes), "scale", "a", 2, None).episode
        episodes.evaluate(me(episodes), unfinished, b"fast", False)
        episodes.evaluate(me(episodes), unfinished, b"slow", False)
    with served(tmp_path, evaluations=3) as (episodes, _):
        view = episodes.overview()
        assert (view.open, view.finished) == (1, 1)
        assert episodes.begin(me(episodes), "scale", "a", 2, None).episode == unfinished
        assert episodes.begin(me(episodes), "scale", "a", 3, None).attempt == 3
        with pytest.raises(EpisodeOver, match="finished"):
            episodes.finish(me(episodes), done, b"fast")
        assert episodes.evaluate(me(episodes), unfinished, b"same", False).left == 0
        final = episodes.finish(me(episodes), unfinished, None)
    assert final.speedup == 2.0, "the best kernel is one from before the restart"
    assert [trial.attempt for trial in records.read_run(tmp_path / "run").trials] == [1, 2]


def test_a_folder_of_another_kind_or_of_changed_tasks_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as (episodes, _):
        episodes.begin(me(episodes), "scale", "a", None, None)
        with pytest.raises(UsageError, match="being written by process"), served(tmp_path):
            pass
    with pytest.raises(UsageError, match="other evaluation options: effort"), served(tmp_path, effort=Effort.SCREEN):
        pass
    kernel = tmp_path / "tasks" / TASK / "kernel.py"
    kernel.write_text(kernel.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has changed since episode"), served(tmp_path):
        pass


def test_more_than_its_capacity_is_refused_with_a_hint(tmp_path: Path) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def hold_up() -> None:
        begun.set()
        assert go_on.wait(10)

    with served(tmp_path, Judge(hold_up), capacity=2) as (episodes, _):
        names = [episodes.begin(me(episodes), "scale", "a", seed, None).episode for seed in range(3)]
        threads = [
            threading.Thread(target=episodes.evaluate, args=(me(episodes), name, b"fast", False)) for name in names[:2]
        ]
        for thread in threads:
            thread.start()
        assert begun.wait(10)
        while episodes.overview().waiting < 2:
            threading.Event().wait(0.005)
        with pytest.raises(Busy, match="2 evaluations are judged or wait already") as busy:
            episodes.evaluate(me(episodes), names[2], b"fast", False)
        assert busy.value.retry_after_s >= 1
        go_on.set()
        for thread in threads:
            thread.join(10)
        assert episodes.evaluate(me(episodes), names[2], b"fast", False).reward == 1.0


def test_the_split_holds_whole_operators_apart() -> None:
    corpora = open_corpora()
    train, held = (tasks_of(split, corpora.folders) for split in (TaskSplit.TRAIN, TaskSplit.EVALUATION))
    assert {*train} | {*held} == {*corpora.ids} and not {*train} & {*held}
    assert (len(train), len(held)) == (153, 43)
    operators = [{task.rpartition("/")[2] for task in tasks} for tasks in (train, held)]
    assert not operators[0] & operators[1]
    assert chosen_tasks(corpora, ("softmax",), TaskSplit.TRAIN) == corpora.select(("softmax",))
    with pytest.raises(UsageError, match="in the split evaluation"):
        chosen_tasks(corpora, ("softmax",), TaskSplit.EVALUATION)
