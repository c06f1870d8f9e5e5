"""Draw docs/figures/*.svg. Used by `tools/claims.py`.

Each figure has a background of its own, so that it reads on light and dark pages. The numbers in the report's drawing
are those of the quickstart run in docs/evaluate/quickstart.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from arena.task.definition import Fill
from arena.task.expression import Expression
from arena.task.numerics.fills import draw
from figures.quickstart import OVERFIT, Shown, drawn
from figures.svg import FILLS, INK, QUIET, Drawing

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.one_input import one_input

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "figures"


def processes() -> Drawing:
    """Processes of a run, and what passes between them."""
    out = Drawing(860, 400, "Processes of a run")
    out.box((30, 60, 190, 120), "runner", ["configuration, records", "submissions", "report", "no device"], "trusted")
    out.box(
        (330, 60, 210, 120),
        "judge",
        ["seeds, references", "tolerances", "the clock that counts", "verdicts"],
        "trusted",
    )
    out.box((330, 250, 210, 66), "fork server", ["imported libraries only"], "trusted")
    out.box((30, 250, 190, 66), "builder", ["compilers, no device"], "trusted")
    out.box((640, 60, 190, 84), "worker: baseline", ["one program", "buffers of one case"], "untrusted")
    out.box((640, 166, 190, 84), "worker: candidate", ["one program", "buffers of one case"], "untrusted")
    out.box((30, 334, 190, 46), "agent", ["workspace, ./evaluate"], "untrusted")
    out.arrow([(220, 120), (330, 120)], both=True)
    out.note(275, 112, "candidates,", middle=True)
    out.note(275, 136, "verdicts", middle=True)
    out.arrow([(540, 100), (640, 100)], both=True)
    out.arrow([(540, 150), (590, 150), (590, 205), (640, 205)], both=True)
    out.note(590, 84, "commands,", middle=True)
    out.note(590, 120, "buffers", middle=True)
    out.arrow([(435, 180), (435, 250)])
    out.note(445, 219, "starts")
    out.arrow([(540, 285), (735, 285), (735, 250)])
    out.note(620, 279, "forks")
    out.arrow([(125, 180), (125, 250)], both=True)
    out.note(135, 219, "sources, libraries")
    out.arrow([(30, 357), (14, 357), (14, 150), (30, 150)], both=True)
    out.text(30, 36, "Processes of a run", size=15, bold=True)
    out.box((330, 346, 16, 14), "", (), "trusted")
    out.note(354, 358, "trusted")
    out.box((430, 346, 16, 14), "", (), "untrusted")
    out.note(454, 358, "not trusted, in a sandbox of its own")
    return out


def timed_round() -> Drawing:
    """One round: four passes in random order, each between fresh data and a check."""
    out = Drawing(860, 380, "One timed round")
    out.text(30, 36, "One timed round", size=15, bold=True)
    out.note(
        30, 56, "Short and long passes of baseline and candidate, in random order, on inputs drawn for this round."
    )
    passes = [("candidate, long", 8), ("baseline, short", 1), ("baseline, long", 8), ("candidate, short", 1)]
    x = 30.0
    for name, length in passes:
        width = 250.0 if length > 1 else 140.0
        out.box(
            (x, 74, width, 52),
            name,
            [f"{'8n' if length > 1 else 'n'} calls"],
            "untrusted" if "candidate" in name else "trusted",
        )
        x += width + 6
    _pass_in_detail(out)
    out.text(30, 286, "latency = (T(8n) − T(n)) / 7n", size=13, bold=True, ink=FILLS["time"][1])
    out.text(
        330,
        286,
        "speedup of the round = baseline latency / candidate latency",
        size=13,
        bold=True,
        ink=FILLS["time"][1],
    )
    out.note(30, 314, "The constant cost of reaching a worker cancels. Rounds repeat until their interval is narrow;")
    out.note(
        30, 332, "the two sides exchange buffers in between. While the baseline runs, the candidate's worker is frozen."
    )
    out.note(30, 350, "On the CPU platform a pass is one call, and its time is the worker's processor time.")
    return out


def _pass_in_detail(out: Drawing) -> None:
    """Draw the steps around one timed pass."""
    out.text(30, 162, "One pass in detail", size=13, bold=True)
    steps = [
        ("write", ["inputs; poison", "outputs"], "data", 124),
        ("evict", ["the cache"], "data", 84),
        ("prepare", ["marker kernel,", "rehearsal"], "plain", 122),
        ("timed", ["the judge's clock:", "n or 8n calls"], "time", 138),
        ("stop", ["marker kernel;", "freeze worker"], "plain", 122),
        ("check", ["no poison left;", "secret sample"], "data", 124),
    ]
    x = 30.0
    for title, lines, kind, width in steps:
        out.box((x, 176, width, 70), title, lines, kind)
        if title != "check":
            out.arrow([(x + width, 211), (x + width + 17, 211)])
        x += width + 17


def task_folder() -> Drawing:
    """The files of a task, and who reads them."""
    out = Drawing(860, 370, "The task folder")
    out.text(30, 36, "tasks/<task type>/<suite>/<name>/", size=15, bold=True)
    rows = [
        ("task.yaml", "axes, dtypes, inputs with fills, outputs, tolerance", "data", True),
        ("reference.py", "semantics in PyTorch; make_inputs for custom fills", "data", True),
        ("seen.yaml", "at least five cases to develop against", "data", True),
        ("kernel.py or kernel.hip", "the baseline kernel; none for torch2hip", "data", True),
        ("heldout.yaml", "at least five cases of other kinds", "untrusted", False),
        ("expert.py or expert.hip", "optional: a faster solution", "untrusted", False),
    ]
    out.text(600, 64, "agent", size=12, bold=True, ink=QUIET, middle=True)
    out.text(680, 64, "candidate", size=12, bold=True, ink=QUIET, middle=True)
    out.text(775, 64, "judge", size=12, bold=True, ink=QUIET, middle=True)
    for number, (name, purpose, kind, seen) in enumerate(rows):
        y = 76 + 44 * number
        out.box((30, y, 190, 34), "", (), kind)
        out.text(40, y + 21, name, bold=True, ink=FILLS[kind][1])
        out.text(232, y + 21, purpose, size=12)
        out.text(600, y + 21, _seen_as(name) if seen else "–", size=12, ink=INK if seen else QUIET, middle=True)
        out.note(680, y + 21, "–", middle=True)
        out.text(775, y + 21, "reads", size=12, middle=True)
        out.line((30, y + 39), (830, y + 39))
    out.note(30, 352, "A candidate's process gets buffers only, in the shapes of one case at a time.")
    return out


def _seen_as(name: str) -> str:
    """Return how an agent sees a file of the task."""
    return "as TASK.md" if name == "task.yaml" else "a copy"


_NOTES = [
    (78, "Three answers.", "Each with a number and an interval."),
    (180, "Two figures.", "A ring is seen, a dot unseen too."),
    (322, "The table.", "hardcoded is lost on unseen shapes."),
    (430, "Every task.", "A name opens cases, code, transcript."),
]
_COLOURS = ("#3b6fb6", "#d9822b", "#2f9e77")


def report() -> Drawing:
    """The first screen of a report, with the results of the kept quickstart run."""
    agents, leads = drawn()
    out = Drawing(860, 490, "The first screen of a report")
    out.box((30, 24, 500, 442), "", (), "zone")
    out.text(46, 50, "quickstart", size=16, bold=True)
    out.box((46, 62, 468, 62), "", (), "plain")
    questions = ("Which agent is best?", "By how much, really?", "What does it lose?")
    for number, (question, lead) in enumerate(zip(questions, leads, strict=True)):
        out.text(56 + 158 * number, 84, question, size=12, ink=QUIET)
        out.text(56 + 158 * number, 108, lead.split(" [")[0].split(" trials")[0], size=15, bold=True)
    for x, title in ((46, "Gain"), (288, "From seen to unseen shapes")):
        out.box((x, 134, 226, 110), "", (), "plain")
        out.text(x + 10, 154, title, size=12, bold=True)
    for number, (one, color) in enumerate(zip(agents, _COLOURS, strict=True)):
        y = 176 + 24 * number
        for x in (56, 298):
            out.text(x, y + 4, one.name, size=11)
        low, high = one.gain.low or one.gain.value, one.gain.high or one.gain.value
        out.bar(92 + 28 * low, y - 1, 28 * max(high - low, 0.05), 2, color)
        out.bar(88 + 28 * one.gain.value, y - 4, 8, 8, color)
        unseen = 380 + 24 * one.solved
        out.bar(unseen, y - 1, 476 - unseen, 2, "#8c959f")
        out.bar(472, y - 5, 10, 10, "#8c959f")
        out.bar(unseen - 4, y - 4, 8, 8, color)
    _report_tables(out, agents)
    for y, head, line in _NOTES:
        out.arrow([(562, y), (522, y)])
        out.text(570, y - 3, head, size=12, bold=True)
        out.note(570, y + 13, line)
    return out


def _report_tables(out: Drawing, agents: Sequence[Shown]) -> None:
    columns = (56, 150, 230, 390)
    for x, name in zip(columns, ("Agent", "Solved", "Gain", "Lost"), strict=True):
        out.text(x, 276, name, size=12, bold=True, ink=QUIET)
    for number, one in enumerate(agents):
        y, low, high = 300 + 24 * number, one.gain.low, one.gain.high
        gain = f"{one.gain.value:.2f}×" + ("" if low is None or high is None else f" [{low:.2f}, {high:.2f}]")
        cells = (one.name, f"{one.solved}/{len(one.tasks)}", gain, f"{100 * one.lost:.0f} %")
        for x, cell in zip(columns, cells, strict=True):
            out.text(x, y, cell, size=12, bold=one.name == OVERFIT)
        out.line((46, y + 8), (514, y + 8))
    places = (230, 320, 410)
    out.text(56, 400, "Tasks", size=12, bold=True, ink=QUIET)
    for x, one in zip(places, agents, strict=True):
        out.text(x, 400, one.name, size=12, bold=True, ink=QUIET)
    for y, task in ((424, "softmax"), (448, "simple_matmul")):
        for x, cell in ((56, task), *((x, one.tasks[task]) for x, one in zip(places, agents, strict=True))):
            out.text(x, y, cell, size=12)


_TRUSTED = [
    ("judge", ["seeds, expected values, tolerances, clock", "computes references, writes verdicts"]),
    ("runner and service", ["records, budgets, held-out cases", "answers name seen cases only"]),
    ("builder", ["limits on time and memory", "allow-lists of symbols and headers"]),
]
_UNTRUSTED = [
    ("worker with a candidate", ["namespaces, Landlock, seccomp", "no seed, no expected value"]),
    ("agent", ["its workspace, its credential", "bubblewrap, network allow-list"]),
    ("compilers", ["read a candidate's text", "no network, no task files"]),
]
_EXCHANGES = [
    (112, "buffers, commands", "output bytes, bounded answers"),
    (198, "TASK.md, feedback on seen cases", "kernel text, up to 1 MiB"),
    (284, "source, limits", "objects and libraries"),
]


def trust_boundary() -> Drawing:
    """What is trusted, and what may cross the boundary."""
    out = Drawing(860, 420, "The trust boundary")
    out.text(30, 36, "The trust boundary", size=15, bold=True)
    out.box((30, 54, 330, 300), "", (), "zone")
    out.text(46, 76, "trusted", size=12, bold=True, ink=QUIET)
    out.box((560, 54, 270, 300), "", (), "zone")
    out.text(576, 76, "not trusted", size=12, bold=True, ink=QUIET)
    for number, (title, lines) in enumerate(_TRUSTED):
        out.box((46, 88 + 86 * number, 298, 74), title, lines, "trusted")
    for number, (title, lines) in enumerate(_UNTRUSTED):
        out.box((576, 88 + 86 * number, 238, 74), title, lines, "untrusted")
    for y, there, back in _EXCHANGES:
        out.text(460, y - 6, there, size=11, ink=QUIET, middle=True)
        out.arrow([(350, y), (570, y)])
        out.arrow([(570, y + 22), (350, y + 22)])
        out.text(460, y + 36, back, size=11, ink=QUIET, middle=True)
    out.note(
        30, 380, "A worker can report that its candidate failed, never that it passed: the judge compares the buffers."
    )
    out.note(
        30, 400, "Also trusted: the operating system, GPU driver, PyTorch and Triton as installed, and task folders."
    )
    return out


def fills() -> Drawing:
    """Draws of six fills, by the code that fills inputs; another version of PyTorch may draw other values."""
    out = Drawing(860, 430, "Draws of six fills")
    panels = [
        ("normal", "uneven: one large tile", _drawn("normal", {}, (16, 32), "float32", seed=9, uneven=True)),
        ("normal_even", "one scale", _drawn("normal_even", {}, (16, 32), "float32", seed=3)),
        (
            "normal_rows",
            "a scale for each row",
            _drawn("normal_rows", {"low": "0.1", "high": "4"}, (16, 32), "float32", seed=5),
        ),
        ("integers", "[0, 16)", _drawn("integers", {"low": "0", "high": "16"}, (16, 32), "int32", seed=1)),
        ("page_table", "distinct, below 600", _drawn("page_table", {"pages": "600"}, (16, 32), "int32", seed=1)),
        (
            "offsets",
            "ascending from 0 to 64",
            _drawn("offsets", {"total": "64", "least": "1"}, (16, 17), "int32", seed=1),
        ),
    ]
    for number, (name, note, values) in enumerate(panels):
        x, y = 30 + 275 * (number % 3), 36 + 198 * (number // 3)
        out.text(x, y, name, bold=True)
        out.text(x + 112, y, note, size=12, ink=QUIET)
        largest = max(abs(value) for row in values for value in row) or 1.0
        width = 250 / len(values[0])
        for line, row in enumerate(values):
            for column, value in enumerate(row):
                share = min(1.0, abs(value) / largest)
                color = (180, 83, 31) if value < 0 else (36, 99, 180)
                mixed = "".join(f"{round(255 + (tone - 255) * share**0.6):02x}" for tone in color)
                out.bar(round(x + column * width, 1), y + 10 + 9 * line, round(width - 0.5, 1), 8.5, f"#{mixed}")
    out.text(
        30,
        418,
        "Blue is positive, orange negative; the darkest is the largest of its panel. Rows are rows of the input.",
        size=12,
        ink=QUIET,
    )
    return out


def _drawn(
    kind: str, options: dict[str, str], shape: tuple[int, int], dtype: str, *, seed: int, uneven: bool = False
) -> list[list[float]]:
    """One draw of an input of a made-up task."""
    worked_out = one_input(Fill(kind, {name: Expression(text) for name, text in options.items()}), shape, dtype)
    tensor = worked_out.inputs[0]
    values = draw(tensor, worked_out, 1, torch.Generator().manual_seed(seed), uneven=uneven)[0].tolist()
    return [[float(value) for value in row] for row in values]


FIGURES: dict[str, Callable[[], Drawing]] = {
    "processes": processes,
    "timed-round": timed_round,
    "task-folder": task_folder,
    "report": report,
    "trust-boundary": trust_boundary,
}
