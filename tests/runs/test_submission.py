"""A run folder from a stranger is read only where its files, names and sizes are those of a run."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.errors import RecordError
from arena.results.record import AgentUsed, Estimate, Round, Trial
from arena.runs import records, submission
from arena.runs.submission import check_files, read_folder, read_submission, records_hash
from tests.reports.builders import case, run, simple, trial


def written(folder: Path, *trials: Trial, **changes: object) -> Path:
    made = run(trials) if trials else simple([2.0, None])
    records.write(folder / records.HEAD, replace(made.info, **changes))  # type: ignore[arg-type]
    for one in made.trials:
        records.write_trial(folder, one)
    return folder


def test_an_ordinary_run_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    assert len(read_submission(folder).trials) == 2
    before = records_hash(folder)
    (folder / "run.lock").write_text("1")
    assert records_hash(folder) == before
    kernel = folder / "submissions" / "alpha" / "kernel.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("x")
    assert records_hash(folder) != before


def test_links_and_special_files_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    (tmp_path / "secret").write_text("secret")
    link = folder / "trials" / "alpha" / "link.json"
    link.symlink_to(tmp_path / "secret")
    with pytest.raises(RecordError, match=r"link\.json.*hand in the folder"):
        read_submission(folder)
    link.unlink()
    (folder / "submissions").symlink_to(tmp_path)
    with pytest.raises(RecordError, match="submissions"):
        read_submission(folder)
    (folder / "submissions").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(RecordError, match="pipe"):
        check_files(folder)
    (tmp_path / "other").symlink_to(folder)
    with pytest.raises(RecordError, match="not a folder"):
        check_files(tmp_path / "other")


def test_files_that_are_too_large_or_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "r1")
    with (folder / "run.json").open("ab") as file:
        file.truncate(17 << 20)
    with pytest.raises(RecordError, match="bytes, more than"):
        read_submission(folder)
    monkeypatch.setattr(submission, "_MOST_FILES", 1)
    with pytest.raises(RecordError, match=r"more than 1 files"):
        check_files(written(tmp_path / "r2"))


@pytest.mark.parametrize("name", ["../../up", "", ".hidden", "a/b", "<script>", "x" * 101, "‮gnp", "a\n"])
def test_names_that_are_no_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match=r"run\.json.*is no name.*\$\.agents\[1\]"):
        read_submission(written(tmp_path / "r1", agents=("alpha", name)))
    with pytest.raises(RecordError, match=r"is no name.*\$\.run"):
        read_submission(written(tmp_path / "r2", run=name))


@pytest.mark.parametrize("task", ["..", "a/b", "../../../etc", "triton2triton/../x", "a/b/c/d"])
def test_tasks_that_are_no_ids_are_refused(tmp_path: Path, task: str) -> None:
    made = simple([2.0])
    with pytest.raises(RecordError, match=r"no task id.*\$\.tasks\[1\]"):
        read_submission(written(tmp_path / "r1", *made.trials, tasks=(*made.info.tasks, task)))


def test_a_record_under_another_name_or_type_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    first = next((folder / "trials" / "alpha").glob("*.json"))
    copy = first.with_name("twice.1.json")
    copy.write_bytes(first.read_bytes())
    with pytest.raises(RecordError, match=r"twice.*under another trial's name"):
        read_submission(folder)
    strange = [replace(one, task_type="<b>") for one in simple([2.0]).trials]
    with pytest.raises(RecordError, match="no task type"):
        read_submission(written(tmp_path / "r2", *strange))
    kinds = [trial(cases=[replace(case(), kind="$x$")])]
    with pytest.raises(RecordError, match="no kind of case"):
        read_submission(written(tmp_path / "r3", *kinds))


@pytest.mark.parametrize(
    ("place", "value", "key"),
    [
        (("attempts",), 10**12, r"\$\.attempts"),
        (("attempts",), 99_999, "more than 1000000 trials"),
        (("agents",), ["alpha"] * 2, "planned twice"),
        (("tasks",), ["triton2triton/norm/t00"] * 2, "planned twice"),
        (("evaluation",), {"effort": "none"}, "evaluation.effort"),
        (("environment", "device", "arch"), "../../x", r"\$\.environment\.device\.arch"),
        (("environment", "device", "platform"), "/etc", r"\$\.environment\.device\.platform"),
        (("environment", "device", "memory_bytes"), -1, r"\$\.environment\.device\.memory_bytes"),
        (("selected",), [["../x", "triton2triton/norm/t00", 1]], r"\$\.selected\[0\]"),
        (("corpus",), {"release": 1, "hash": "<script>"}, r"\$\.corpus\.hash"),
    ],
)
def test_a_head_out_of_bounds_names_file_and_key(
    tmp_path: Path, place: tuple[str, ...], value: object, key: str
) -> None:
    folder = written(tmp_path / "r1", *simple([2.0] * 11).trials)
    edit(folder / "run.json", place, value)
    with pytest.raises(RecordError, match=rf"run\.json.*{key}.*hand in"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("place", "value", "key"),
    [
        (("attempt",), -1, r"\$\.attempt"),
        (("seconds",), -0.5, r"\$\.seconds"),
        (("seconds",), 1e300, r"\$\.seconds"),
        (("evaluation", "cases", 0, "case"), "<script>", r"cases\[0\]\.case"),
        (("evaluation", "cases", 0, "timing", "rounds", 0, "baseline_long_s"), -1.0, "baseline_long_s"),
        (("evaluation", "cases", 0, "timing", "rounds", 0, "candidate_long_s"), 1e12, "candidate_long_s"),
        (("evaluation", "cases", 0, "timing", "calls_long"), 10**12, "calls_long"),
        (("evaluation", "cases", 0, "timing", "roofline_ms"), 0, "roofline_ms"),
        (("evaluation", "cases", 0, "timing", "speedup", "value"), 1e17, "speedup"),
        (("evaluation", "cases", 1, "case"), "s1", "two results of 's1'"),
        (("evaluation", "task_hash"), "other", "evaluation.task_hash"),
        (("evaluation", "task"), "triton2triton/norm/other", "evaluation.task"),
        (("evaluation", "environment", "device", "name"), "other", "evaluation.environment"),
    ],
)
def test_a_record_out_of_bounds_names_file_and_key(
    tmp_path: Path, place: tuple[str | int, ...], value: object, key: str
) -> None:
    folder = written(tmp_path / "r1", *simple([2.0]).trials)
    edit(folder / "trials" / "alpha" / "triton2triton.norm.t00.1.json", place, value)
    with pytest.raises(RecordError, match=rf"triton2triton\.norm\.t00\.1\.json.*{key}.*hand in"):
        read_folder(folder)


def edit(path: Path, place: tuple[str | int, ...], value: object) -> None:
    """Change one value of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(content), encoding="utf-8")


def test_what_could_not_be_read_is_not_begun(tmp_path: Path) -> None:
    info = replace(simple([2.0]).info, tasks=("triton2triton/norm/a b",))
    with pytest.raises(RecordError, match=r"no task id.*rename"):
        records.write_head(tmp_path / "r1", info)
    assert not (tmp_path / "r1").exists()


@pytest.mark.parametrize("name", ["/tmp/elsewhere", "../../x", "..", "a/b"])
@pytest.mark.parametrize("command", [("report",), ("export", "submission")])
def test_no_command_writes_where_a_run_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: tuple[str, ...]
) -> None:
    made = simple([2.0])
    trials = [replace(one, run=name) for one in made.trials]
    folder = written(tmp_path / "in" / "r1", *trials, run=name)
    (tmp_path / "work" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "here")
    before = sorted(tmp_path.rglob("*"))
    out = [] if command == ("report",) else ["--out", "out"]
    done = CliRunner().invoke(app, [*command, str(folder), *out])
    assert isinstance(done.exception, RecordError) and "$.run" in str(done.exception)
    assert sorted(tmp_path.rglob("*")) == before


def test_every_reader_of_finished_runs_refuses_links(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    (folder / "submissions").symlink_to("/etc")
    for command in (["report"], ["compare", str(folder)], ["portability"], ["site", "--out", "x"]):
        done = CliRunner().invoke(app, [*command, str(folder)])
        assert isinstance(done.exception, RecordError) and "submissions" in str(done.exception), command


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"speedup": Estimate(1e-300, 1e-300, 1.0)}, r"speedup: 1e-300 \[1e-300, 1\] is out of range"),
        ({"candidate_ms": Estimate(1e12, 1e12, 1e12)}, r"candidate_ms: 1e\+12 \[1e\+12, 1e\+12\] is out of range"),
        ({"rounds": (Round(1.0, 1.0, 2.0, 2.0),) * 1025}, "1025 rounds, more than 1024"),
    ],
)
def test_timings_that_nobody_measured_are_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    first = case("s1", 2.0)
    assert first.timing is not None
    folder = written(tmp_path / "r1", trial(cases=[replace(first, timing=replace(first.timing, **changes))]))
    with pytest.raises(RecordError, match=f"s1: {said}"):
        read_folder(folder)


def test_a_trial_that_calls_its_agent_a_calibration_is_refused(tmp_path: Path) -> None:
    """Of such an agent the baseline itself would count as solved."""
    claimed = replace(trial(), used=AgentUsed("program", None, calibrates=True))
    with pytest.raises(RecordError, match=r"1\.json: used\.calibrates: its run says another"):
        read_folder(written(tmp_path / "r1", claimed, used={"alpha": AgentUsed("program", None)}))
