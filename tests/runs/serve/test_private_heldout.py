"""`arena serve --private-heldout`: cases of an episode alone, and nothing of them in any answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from arena.errors import UsageError
from arena.judge.process.messages import Progress
from arena.results.record import CaseResult, Evaluation, Split
from arena.results.verdict import Stage, Status, Verdict
from arena.runs import records
from arena.runs.serve.episode import NoVerdict
from arena.runs.serve.journal import EpisodeJournal
from arena.task.corpus.sampling import sample_cases
from arena.task.corpus.task_folder import load_task
from arena.task.options import Options
from tests.runs.serve.serving import TASK, Judge, me, served

SECRET = "CudaError: M=31337 N=4099 is too odd for me"


@dataclass
class Unseeing(Judge):
    """Fails one held-out case, with a text of the kernel's that names its sizes."""

    broken_baseline: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.broken_baseline = False

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None],
        heldout: Path | None = None,
        compiled: Path | None = None,
    ) -> Evaluation:
        found = super().evaluate(task, candidate, options, on_progress, heldout, compiled)
        if not options.heldout:
            return found
        cases = load_task(task, heldout).heldout
        lost = len(candidate.read_text(encoding="utf-8").split()) % len(cases)
        judged = [
            CaseResult(
                case.id, Split.HELDOUT, case.kind, case.label, Status.PASSED,
                Status.CRASH if number == lost else Status.PASSED, f"{SECRET} {case.label}" if number == lost else "",
            )
            for number, case in enumerate(cases)
        ]  # fmt: skip
        verdict = Verdict(Stage.HELDOUT, Status.CRASH, f"{cases[lost].label}: {SECRET}")
        return replace(found, cases=(*found.cases, *judged), verdicts=(*found.verdicts, verdict))

    def check_baseline(self, task: Path, heldout: Path | None, options: Options) -> dict[str, str]:
        found = super().check_baseline(task, heldout, options)
        return dict.fromkeys(found, "wrong_result") if self.broken_baseline else found


def labels(root: Path, attempt: int) -> list[str]:
    """Return the held-out sizes that the record of an episode has."""
    trial = records.read_trial(records.trial_path(root / "run", "a", TASK, attempt))
    assert trial.evaluation is not None
    return [case.label for case in trial.evaluation.split(Split.HELDOUT)]


def test_each_episode_has_cases_of_its_own_that_its_record_names(tmp_path: Path) -> None:
    with served(tmp_path, Unseeing(), private_heldout=True) as (episodes, _):
        for seed in range(2):
            episodes.finish(me(episodes), episodes.begin(me(episodes), "scale", "a", seed, None).episode, b"fast")
    task = load_task(tmp_path / "tasks" / TASK)
    own = {case.label for case in task.heldout}
    one, two = labels(tmp_path, 1), labels(tmp_path, 2)
    assert len(one) == len(two) == len(own) and one != two and not own & {*one, *two}
    for state, found in zip(EpisodeJournal(tmp_path / "run").states(), (one, two), strict=True):
        assert state.draw_seed is not None
        again = sample_cases(task, len(found) + 4, state.draw_seed, 1e5)
        assert [case.label for case in again[: len(found)]] == found
        trial = records.read_run(tmp_path / "run").trials[state.attempt - 1]
        assert trial.session is not None and f"cases of seed {state.draw_seed}" in trial.session.detail


def test_a_restart_keeps_the_draw_and_the_kind_of_server(tmp_path: Path) -> None:
    judge = Unseeing()
    judge.broken_baseline = True
    with served(tmp_path, judge, private_heldout=True) as (episodes, _):
        one = episodes.begin(me(episodes), "scale", "a", 1, None).episode
        with pytest.raises(NoVerdict, match="the baseline passes 0 of the private held-out cases"):
            episodes.finish(me(episodes), one, b"fast")
    (before,) = EpisodeJournal(tmp_path / "run").states()
    with (
        pytest.raises(UsageError, match="was begun by `arena serve --private-heldout`, this is `arena serve`"),
        served(tmp_path, Unseeing()),
    ):
        pass
    with served(tmp_path, Unseeing(), private_heldout=True) as (episodes, _):
        episodes.finish(me(episodes), one, b"fast")
    (after,) = EpisodeJournal(tmp_path / "run").states()
    assert after.draw_seed == before.draw_seed is not None
    task = load_task(tmp_path / "tasks" / TASK, EpisodeJournal(tmp_path / "run").heldout(one))
    assert [case.label for case in task.heldout] == labels(tmp_path, 1)


@pytest.mark.parametrize("private", [False, True])
def test_no_answer_has_text_or_place_of_a_heldout_case(tmp_path: Path, private: bool) -> None:
    with served(tmp_path, Unseeing(), private_heldout=private) as (episodes, _):
        told = []
        for kernel in (b"fast", b"now fast", b"it is now fast"):  # each loses another case
            view = episodes.begin(me(episodes), "scale", "a", None, None)
            step = episodes.evaluate(me(episodes), view.episode, kernel, True)
            final = episodes.finish(me(episodes), view.episode, kernel)
            assert final.heldout is not None and final.heldout.passed == final.heldout.cases - 1
            told.append((step.text, bytes(step.result), msgspec.json.encode(final)))
            said = " ".join(map(str, (*told[-1], episodes.status(me(episodes), view.episode), view)))
            hidden = labels(tmp_path, len(told))
            assert SECRET not in said and "31337" not in said and "heldout-" not in said and "draw_seed" not in said
            assert not any(label in said for label in hidden) and "crash" not in said
        assert len({final for *_, final in told}) == 1, "whichever case is lost, the verdict is the same"


def test_a_domain_without_other_cases_begins_no_episode(tmp_path: Path) -> None:
    from arena.runs.serve.episodes import UnknownName
    from tests.task.corpus.folders import TASK as DEFINITION
    from tests.task.corpus.folders import write_task

    small = DEFINITION.replace("[1, 4096]", "[1, 2]").replace("[8, 4096], multiple_of: 8", "[8, 16], multiple_of: 8")
    seen = "".join(f"- {{M: {m}, N: 8, D: 64, dtype: float32, timed: true}}\n" for m in (1, 2))
    others = ((1, "float32"), (2, "float16"), (1, "float16"))
    seen += "".join(f"- {{M: {m}, N: 16, D: 64, dtype: {kind}}}\n" for m, kind in others)
    unseen = "".join(
        f"- {{kind: edge, M: {m}, N: {n}, D: 128, dtype: {kind}{timed}}}\n"
        for m, n, kind, timed in (
            (1, 8, "float32", ", timed: true"), (2, 8, "float32", ""), (1, 16, "float32", ""),
            (2, 16, "float32", ""), (1, 8, "float16", ""),
        )
    )  # fmt: skip
    write_task(tmp_path / "tasks", TASK, task=small, seen=seen, heldout=unseen)
    with served(tmp_path, Unseeing(), private_heldout=True) as (episodes, _):
        with pytest.raises(UnknownName, match=r"fresh cases found.*this server draws private held-out cases"):
            episodes.begin(me(episodes), "scale", "a", None, None)
        assert episodes.overview(me(episodes)).used is not None
