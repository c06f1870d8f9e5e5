"""Every field of a run folder is changed: each command says which file and key is wrong, or does its work.

A mutant changes one to three places of run.json or of a record. A command may refuse it with an error that names file
and key, and may write into its output folder; it raises nothing else, and takes no time.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arena.cli.report import write_and_show
from arena.errors import ArenaError, RecordError
from arena.integrations.submissions import write_submissions
from arena.integrations.tracking import point
from arena.reports.compare import compare_runs
from arena.reports.groups import groups
from arena.reports.reproduction import compare_trial
from arena.reports.rows import trial_rows
from arena.reports.site import write_site
from arena.reports.site_entries import read_entries
from arena.reports.tables import comparison_markdown
from arena.results.portability import KernelUse, MachineCode, MachineCodeOutcome
from arena.results.profile import Counters, CounterTable, KernelTime, Profile
from arena.results.record import AgentUsed, Trial
from arena.results.release import Corpus
from arena.results.session import Flag, Limits
from arena.runs import records
from arena.runs.records import RunRecords
from arena.runs.serve.clients import read_clients
from arena.runs.submission import read_folder
from tests.reports import builders as b
from tests.reports.test_site import findings_of, kept, verification_of

Place = tuple[str | int, ...]
SEED = 20261128
LONGEST_S = 20.0
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, 10**12, 2**53, 2**63, 2**64, -(2**63), 10**30,
    0.0, -0.0, 0.5, -0.5, 1e-300, 5e-324, 1e12, 1e15, 1e300, 1.7976931348623157e308, -1e300,
    "", "x", "0", "-1", "nan", "inf", "/etc/passwd", "../../x", "..", "a/b", "a\\b", "a\nb", "\x00",
    "\x1b[31m", "\u202ex",
    "<script>alert(1)</script>", "[bold]x[/nothing]", "](javascript:x)", "| a | b |", "=1+1", "%s{}$x", "x" * 10_000,
    "passed", "harness_error", "nothing_submitted", "wrong_result", "heldout", "seen", "full", "screen", "rocm", "cpu",
    "triton2triton/norm/t00", "hip2hip/a/b", "alpha", "2025-06-01T12:00:00Z", "9999-12-31T23:59:59+14:00",
    [], {}, [[]], [None], [0], ["x"], [{}], {"a": 1}, {"x": None}, {"value": 1.0, "low": 0.0, "high": 2.0},
)  # fmt: skip
"""what takes the place of a field's value"""


def rich_trial(trial: Trial) -> Trial:
    """Return a record with a value in every field."""
    assert trial.evaluation is not None
    use = KernelUse("gelu", 40, 2048, 0, 24, 0.5)
    code = MachineCode(MachineCodeOutcome.RIGHT, "0.1 of the tolerance", "M=1", 0.5)
    targets = (replace(b.built("gfx942", use), machine_code=code), b.refused("sm_90"), b.unchecked("gfx950"))
    counters = CounterTable("rocprofv3", Counters(1.0, 50.0), Counters(2.0), "", 0.5, 0.25)
    profile = Profile("seen-01", (KernelTime("gelu", 1, 5.0, (4,), (256,)),), "", {"gfx942": (use,)}, counters)
    cases = list(trial.evaluation.cases)
    assert cases[0].timing is not None
    other = b.estimate(1.0)
    timing = replace(cases[0].timing, roofline_ms=0.1, other_baselines_ms={"torch_compile": 0.7}, alone_ms=other)
    cases[0] = replace(cases[0], timing=replace(timing, rounds=timing.rounds[:2]), error_ratio=0.25)
    evaluation = replace(
        trial.evaluation,
        cases=tuple(cases),
        targets=targets,
        profile=profile,
        compile_log="warning",
        seconds={"a": 1.0},
    )
    session = b.session(b.evaluated(1), b.evaluated(2, None), flags=[Flag(1, "heldout.yaml", "cat heldout.yaml")])
    used = AgentUsed("abc", Limits(tokens=1000, cost_usd=1.0), False)
    return replace(trial, evaluation=evaluation, session=session, used=used)


def rich_run() -> RunRecords:
    """Return a run of three trials with a value in every field of its head and its records."""
    made = b.simple([2.0, 3.0, None])
    trials = [rich_trial(trial) if trial.evaluation and trial.status == "passed" else trial for trial in made.trials]
    info = replace(
        made.info,
        config_text="tasks: ['*']\n",
        evaluation={"effort": "full", "seeds": 3},
        latency_bound=(made.info.tasks[0],),
        families=dict.fromkeys(made.info.tasks, "norm"),
        selected=made.info.planned,
        corpus=Corpus(2, "a" * 64),
        used={"alpha": AgentUsed("abc", Limits(), False)},
    )
    return replace(made, info=info, trials=tuple(trials))


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield every place in a JSON document, the document itself left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from places(one, (*at, key))


def changed(document: Any, place: Place, draw: random.Random) -> str:
    """Change a document at one place, and say what was done."""
    inner: Any = document
    for key in place[:-1]:
        inner = inner[key]
    last: Any = place[-1]
    what = draw.random()
    if what < 0.1:
        del inner[last]
        return f"{place} removed"
    if what < 0.2 and isinstance(inner, list):
        inner.append(copy.deepcopy(inner[last]))
        return f"{place} twice"
    if what < 0.35 and isinstance(inner[last], int | float) and not isinstance(inner[last], bool):
        inner[last] = inner[last] * draw.choice((-1, 0, 1e-9, 1e3, 1e9, 1e30))
        return f"{place} = {inner[last]!r}"
    inner[last] = copy.deepcopy(draw.choice(VALUES))
    return f"{place} = {str(inner[last])[:80]!r}"


def used_by_every_command(folder: Path, unchanged: Sequence[Trial]) -> None:
    """Read a run as report, compare, site, verify, export and tracking do, and compute what they show.

    Repeating a trial reads nothing but its record, so records that are as they were need no repetition.
    """
    run = read_folder(folder)
    for part in records.by_device(run):
        rows = trial_rows([part])
        groups(rows)
    if not run.info.devices:
        for agent in run.info.agents[:1]:
            other = replace(run, info=replace(run.info, run="another"))
            comparison_markdown(compare_runs(run, other, agent, agent))
    for trial in run.trials:
        point(trial)
        if trial.evaluation is not None and trial not in unchanged:
            compare_trial(trial, trial, task_changed=False, own_cases=())


def written_by_every_command(folder: Path, out: Path) -> None:
    """Print and write what report, site and export do."""
    write_and_show([read_folder(folder)], out / "report")
    write_submissions(folder, out / "submissions")
    write_site(read_entries([folder]), out / "site", lambda runs, path: path.mkdir(parents=True))


def files_of(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


class Mutants:
    """A run folder of which one file at a time is changed, and what became of it."""

    def __init__(self, root: Path) -> None:
        self.folder, self.out = root / "in" / "r1", root / "out"
        made = rich_run()
        records.write_head(self.folder, made.info)
        for trial in made.trials:
            records.write_trial(self.folder, trial)
        kernel = records.submission_folder(self.folder, *made.trials[0].key)
        kernel.mkdir(parents=True)
        (kernel / "kernel.py").write_text("def f(): ...\n", encoding="utf-8")
        self.texts = {
            path: path.read_bytes() for path in [self.folder / "run.json", *self.folder.glob("trials/*/*.json")]
        }
        self.places = {path: list(places(json.loads(text))) for path, text in self.texts.items()}
        self.fates: Counter[str] = Counter()

    def fields(self) -> set[tuple[str, ...]]:
        """Return the fields that are changed: keys without the places in lists."""
        return {
            (path.name if path.name == records.HEAD else "record", *(key for key in place if isinstance(key, str)))
            for path, found in self.places.items()
            for place in found
        }

    def run(self, number: int, draw: random.Random, use: Any) -> None:
        """Change up to three places of one file, and have the commands use the folder."""
        path = draw.choice(list(self.texts))
        document = json.loads(self.texts[path])
        done = []
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            try:
                done.append(changed(document, draw.choice(self.places[path]), draw))
            except (KeyError, IndexError, TypeError):  # an earlier change has removed the place
                continue
        try:
            text = json.dumps(document).encode()
        except ValueError:
            return
        path.write_bytes(text)
        began = time.monotonic()
        what = f"mutant {number} of {path.name}: {'; '.join(done)}"
        try:
            use(self.folder, self.out)
            self.fates["used"] += 1
        except RecordError as problem:
            assert ".json" in str(problem) and str(self.folder) in str(problem), f"{what}: {problem}"
            self.fates["refused"] += 1
        except Exception as problem:
            raise AssertionError(f"{what}: {type(problem).__name__}: {problem}") from problem
        finally:
            path.write_bytes(self.texts[path])
        assert time.monotonic() - began < LONGEST_S, what


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [1_000, pytest.param(9_000, marks=pytest.mark.slow)])
def test_a_changed_run_is_refused_with_its_file_or_used(tmp_path: Path, count: int) -> None:
    mutants, draw = Mutants(tmp_path), random.Random(SEED + count)
    assert len(mutants.fields()) >= 200
    trials = read_folder(mutants.folder).trials
    used_by_every_command(mutants.folder, ())
    for number in range(count):
        mutants.run(number, draw, lambda folder, out: used_by_every_command(folder, trials))
    assert mutants.fates["refused"] > count / 4 and mutants.fates["used"] > count / 20, mutants.fates


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_changed_run_is_written_nowhere_but_into_its_output_folder(tmp_path: Path, count: int) -> None:
    mutants, draw = Mutants(tmp_path), random.Random(SEED)
    before = files_of(tmp_path)

    def use(folder: Path, out: Path) -> None:
        written_by_every_command(folder, out / str(sum(mutants.fates.values())))

    for number in range(count):
        mutants.run(number, draw, use)
    outside = {path for path in files_of(tmp_path) - before if not path.is_relative_to(mutants.out)}
    assert not outside
    for page in mutants.out.rglob("*.html"):
        assert "<script>alert(1)" not in page.read_text(encoding="utf-8"), page
    for page in mutants.out.rglob("*.md"):
        assert "<script" not in page.read_text(encoding="utf-8"), page


def test_a_changed_verification_or_file_of_clients_is_refused_with_its_file_or_used(tmp_path: Path) -> None:
    folder = kept(tmp_path / "in", b.simple([2.0, 3.0]))
    verification, clients = verification_of(folder), tmp_path / "clients.yaml"
    account = {"name": "anna", "token": "t" * 16, "agent_token": "u" * 16, "episodes": 5, "places": 2}
    files: dict[Path, tuple[Any, Any]] = {
        verification: (
            json.loads(verification.read_bytes()),
            lambda: [entry.flag("alpha") for entry in read_entries([folder], findings_of(folder))],
        ),
        clients: ({"clients": [account]}, lambda: read_clients(clients)),
    }
    draw, fates = random.Random(SEED), Counter[str]()
    for file, (document, use) in files.items():
        for _ in range(400):
            mutant = copy.deepcopy(document)
            done = changed(mutant, draw.choice(list(places(document))), draw)
            file.write_text(json.dumps(mutant), encoding="utf-8")
            file.chmod(0o600)
            try:
                use()
                fates[f"{file.name} used"] += 1
            except ArenaError as problem:
                assert str(file) in str(problem), f"{done}: {problem}"
                fates[f"{file.name} refused"] += 1
    assert len(fates) == 4 and min(fates.values()) > 20, fates
