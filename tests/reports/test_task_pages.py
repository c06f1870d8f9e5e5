"""A page per task: cases, code against the baseline kernel, profile, links; nothing that a stranger wrote acts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from arena.reports.code_views import code_view
from arena.reports.pages import Report, write_report
from arena.reports.rows import trial_rows
from arena.results.profile import Counters, CounterTable, KernelTime, Profile
from arena.results.record import RunInfo
from arena.results.verdict import Status
from arena.runs.records import RunRecords, submission_folder
from arena.task.corpus.task_folder import TASKS, content_hash

from . import builders as b
from .test_pages import Page

TASK = "triton2triton/fundamentals/add"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> {{ 7 * 7 }}"


def submitted(folder: Path, text: str, *, task: str = TASK, task_hash: str | None = None) -> RunRecords:
    """A run of one trial, with what was handed in on disk."""
    task_hash = task_hash or content_hash(TASKS / TASK)
    trial = b.trial(task, cases=[b.case("s1", 2.0), b.heldout()], task_hash=task_hash)
    assert trial.evaluation is not None
    counters = CounterTable("ncu", None, Counters(occupancy_pct=62.5), "baseline: <none>", None, 0.5)
    profile = Profile("s1", (KernelTime("add<float>", 3, 12.5, (8, 1, 1), (256, 1, 1)),), counters=counters)
    trial = replace(trial, evaluation=replace(trial.evaluation, profile=profile, compile_log="warning: <unused>"))
    place = submission_folder(folder, *trial.key)
    place.mkdir(parents=True)
    (place / "kernel.py").write_text(text, encoding="utf-8")
    return replace(b.run([trial]), path=folder)


def pages(report: Report) -> dict[Path, Page]:
    files = [report.index, *(path for path in report.files if path.suffix == ".html")]
    return {path: Page(path.read_text(encoding="utf-8")) for path in files}


def test_the_code_is_compared_with_the_baseline_kernel(tmp_path: Path) -> None:
    start = (TASKS / TASK / "kernel.py").read_text(encoding="utf-8")
    report = write_report(
        [submitted(tmp_path / "run", start.replace("import triton\n", "import triton  # <b>\n", 1))], tmp_path
    )
    html = next(path for path in report.files if path.name == f"{TASK.replace('/', '.')}.html").read_text()
    assert '<span class="add">+import triton  # &lt;b&gt;</span>' in html
    assert '<span class="del">-import triton</span>' in html
    assert "Compared with the task&#39;s baseline kernel." in html
    for words in ("add&lt;float&gt;", "12.5 µs", "8, 1, 1 × 256, 1, 1", "warning: &lt;unused&gt;"):
        assert words in html
    cells = '<td>{}</td><td class="number">–</td><td class="number">{}</td>'
    for name, value in (("occupancy, %", "62.5"), ("roofline reached, %", "50"), ("L2, GB/s", "–")):
        assert cells.format(name, value) in html
    assert "baseline: &lt;none&gt;" in html


def test_what_the_code_is_compared_with_is_said(tmp_path: Path) -> None:
    start = (TASKS / TASK / "kernel.py").read_text(encoding="utf-8")
    for number, (run, note) in enumerate(
        [
            (submitted(tmp_path / "0", start), "Unchanged. Compared with the task's baseline kernel."),
            (submitted(tmp_path / "1", "x", task_hash="old"), "The task has changed since the run."),
            (submitted(tmp_path / "2", "x", task="hip2hip/m/own"), "not in the installed corpus"),
            (submitted(tmp_path / "3", "x", task="torch2hip/modules/gelu"), "has no baseline kernel"),
            (submitted(tmp_path / "4", "x\n" * 4000), "too long to be compared"),
        ]
    ):
        (row,) = trial_rows([run])
        found = code_view(row, tmp_path / str(number))
        assert found is not None
        assert note in found.note
        assert bool(found.lines) == (number > 0)


@pytest.mark.parametrize("agent", ["../../outside", "/etc"])
def test_a_run_folder_shows_no_file_outside_itself(tmp_path: Path, agent: str) -> None:
    run = submitted(tmp_path / "run", "mine")
    (row,) = trial_rows([run])
    (tmp_path / "outside" / TASK / "1").mkdir(parents=True)
    (tmp_path / "outside" / TASK / "1" / "secret").write_text("theirs")
    assert code_view(replace(row, agent=agent), run.path) is None
    place = submission_folder(run.path, row.agent, row.task, row.attempt) / "kernel.py"
    place.unlink()
    place.symlink_to(tmp_path / "outside" / TASK / "1" / "secret")
    assert code_view(row, run.path) is None


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    run = b.simple([1.5, 2.0, None])
    for path, page in pages(write_report([run], tmp_path)).items():
        assert page.open == []
        for load in page.loads:
            target, _, anchor = unquote(load).partition("#")
            if load.startswith("data:"):
                continue
            there = (path.parent / target).resolve() if target else path
            assert there.is_file(), load
            assert not anchor or anchor in Page(there.read_text(encoding="utf-8")).ids, load


def test_names_and_messages_of_strangers_are_inert(tmp_path: Path) -> None:
    task = f"hip2hip/{HOSTILE.replace('/', '_')}/gelu"
    trial = b.trial(task, Status.COMPILE_ERROR, detail=HOSTILE, agent=HOSTILE)
    run = b.run([trial, replace(trial, agent="beta")], config=HOSTILE)
    found = pages(write_report([RunRecords(run.path, renamed(run.info), run.trials)], tmp_path))
    assert len(found) == 2
    for page in found.values():
        assert page.open == []
        assert page.tags["script"] == 1
        assert "img" not in page.tags
        assert "<script>alert(1)" in page.text
        assert "{{ 7 * 7 }}" in page.text


def renamed(info: RunInfo) -> RunInfo:
    device = replace(info.environment.device, name=HOSTILE)
    return replace(info, environment=replace(info.environment, device=device))


def test_a_long_list_under_a_warning_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    run = b.run([], tasks=[f"hip2hip/m/t{place:03d}" for place in range(300)], agents=["alpha"])
    html = write_report([run], tmp_path).index.read_text(encoding="utf-8")
    warnings = html[html.index('id="warnings"') :]
    assert "300 named" in warnings
    assert "and 100 more in" in warnings
    assert len(re.findall(r"<li><code>", warnings)) == 200
