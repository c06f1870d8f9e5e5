"""The report in headless Chromium: no error, tables sort and filter, links keep it, nothing of strangers runs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.reports.pages import Report, write_report
from arena.results.record import Trial
from arena.results.verdict import Status

from . import builders as b
from .browser import Browser, chromium, needs_chromium
from .test_task_pages import HOSTILE

pytestmark = needs_chromium
AGENTS = ("alpha", "beta", HOSTILE)
COLOUR = "getComputedStyle(document.body).backgroundColor"
FIRST_CELLS = "[...document.querySelectorAll('#tasks-table tbody tr')].filter(row => !row.hidden)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Three agents, one of a hostile name, six tasks; beta fails on tasks 3 to 5."""
    trials = []
    for place in range(6):
        for number, agent in enumerate(AGENTS):
            task = f"hip2hip/{'m' if place < 3 else 'n'}/t{place}"
            fails = agent == "beta" and place >= 3
            status = Status.COMPILE_ERROR if fails else Status.PASSED
            cases = [] if fails else [b.case("s1", 1.5 + ((place * 5 + number) % 6)), b.heldout()]
            trials.append(b.trial(task, status, cases, agent=agent, detail=HOSTILE if fails else ""))
    return write_report([b.run(trials)], tmp_path_factory.mktemp("report"))


def names(browser: Browser) -> list[str]:
    return list(browser.run(f"{FIRST_CELLS}.map(row => row.cells[0].querySelector('a').textContent)"))


def test_columns_sort_and_the_link_keeps_the_order(browser: Browser, report: Report) -> None:
    browser.open(report.index)
    assert names(browser) == [f"t{place}" for place in range(6)]
    place = browser.run(
        "[...document.querySelectorAll('#tasks-table thead th')].findIndex(one => one.textContent === 'beta')"
    )
    column = f"document.querySelectorAll('#tasks-table thead th button')[{place}]"
    browser.run(f"{column}.click()")
    assert names(browser) == ["t2", "t0", "t1", "t3", "t4", "t5"], "largest first, those without a speedup last"
    link = browser.run("location.hash")
    browser.run(f"{column}.click()")
    assert names(browser) == ["t1", "t0", "t2", "t3", "t4", "t5"], "still last"
    browser.open(report.index, link)
    assert names(browser)[:3] == ["t2", "t0", "t1"]
    assert browser.problems == []


def test_filters_and_the_link_that_keeps_them(browser: Browser, report: Report) -> None:
    browser.open(report.index, "#tasks-table.q=t4")
    assert names(browser) == ["t4"]
    browser.open(report.index, "#tasks-table.suite=hip2hip/n&tasks-table.state=failed")
    assert names(browser) == ["t3", "t4", "t5"]
    assert browser.run("document.querySelector('[data-table=tasks-table] output').textContent") == "3 of 6"
    script = "const box = document.querySelector('[data-table=tasks-table] input'); box.value = 't5';"
    browser.run(script + "box.dispatchEvent(new Event('input'))")
    assert names(browser) == ["t5"]
    assert "tasks-table.q=t5" in browser.run("location.hash")


def test_colours_can_be_switched_and_stay(browser: Browser, report: Report) -> None:
    browser.open(report.index, dark=False)
    light = browser.run(COLOUR)
    for switched in (True, False):
        assert any(stays(browser, report, light, switched) for _ in range(100)), "opened again"


def stays(browser: Browser, report: Report, light: str, switched: bool) -> bool:
    """Switch unless it is switched, and open the page again: a new Chromium loses what is stored at first."""
    if (browser.run(COLOUR) != light) != switched:
        browser.run("document.querySelector('.top button').click()")
    assert (browser.run(COLOUR) != light) == switched
    time.sleep(0.2)
    browser.open(report.index)
    return bool(browser.run(COLOUR) != light) == switched


def test_no_page_is_wider_than_a_phone_and_none_reports_an_error(browser: Browser, report: Report) -> None:
    pages = [report.index, *(path for path in report.files if path.suffix == ".html")]
    assert len(pages) == 7
    for page in pages:
        for dark in (False, True):
            browser.open(page, width=390, height=844, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.problems == []


def test_a_link_to_a_trial_opens_it(browser: Browser, report: Report) -> None:
    page = next(path for path in report.files if path.name == "hip2hip.n.t4.html")
    browser.open(page, "#beta.1")
    opened = "[...document.querySelectorAll('.trial')].filter(one => one.open).map(one => one.id)"
    assert browser.run(opened) == ["beta.1"]


def test_the_page_forbids_scripts_that_are_not_its_own(browser: Browser, report: Report, tmp_path: Path) -> None:
    text = report.index.read_text(encoding="utf-8")
    changed = tmp_path / "index.html"
    changed.write_text(text.replace("</body>", "<script>window.ran = 1</script></body>"), encoding="utf-8")
    browser.open(changed)
    assert browser.run("window.ran === undefined")
    assert any("Content Security Policy" in problem for problem in browser.problems)
    browser.problems.clear()


def large() -> list[Trial]:
    """Six agents, 196 tasks, three attempts; a tenth of the trials do not compile, a tenth are lost."""
    draw = random.Random(1)
    kinds = ("edge", "alignment", "scale_up", "dtype")
    trials = []
    for agent in ("claude_code", "codex", "gemini_cli", "opencode", "mini_swe", "expert"):
        for place in range(196):
            task = f"{('triton2triton/gemm', 'hip2hip/modules', 'torch2hip/modules')[place % 3]}/operator_{place:03d}"
            for attempt in (1, 2, 3):
                speedup, lost = 1 + draw.random(), draw.random() < 0.1
                cases = [b.case(f"s{number}", speedup) for number in range(4)]
                cases += [b.heldout(f"h{number}", speedup, kind=kinds[number]) for number in range(4)]
                cases += [b.heldout("h4", None, candidate=Status.WRONG_RESULT)] if lost else []
                built = draw.random() < 0.9
                status, found = (Status.PASSED, cases) if built else (Status.COMPILE_ERROR, [])
                detail = "" if built else "kernel.py:3: error: expected <type>"
                trials.append(b.trial(task, status, found, agent=agent, attempt=attempt, detail=detail))
    return trials


@pytest.mark.slow
def test_3528_trials_weigh_little_and_open_fast(browser: Browser, tmp_path: Path) -> None:
    """Under 3 MB; 2 s are the aim on an idle machine. A busy one has ten, or 50 times what a small report takes."""
    trials = large()
    assert len(trials) == 3528
    report = write_report([b.run(trials, attempts=3)], tmp_path)
    assert report.index.stat().st_size < 3_000_000
    small = write_report([b.run([b.trial()])], tmp_path / "small")
    control_s = browser.open(small.index)
    assert browser.open(report.index) < max(10, 50 * control_s)
    assert browser.run(f"{FIRST_CELLS}.length") == 196
    assert browser.problems == []
