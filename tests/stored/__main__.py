"""Make the evaluations that tests of adapters serve, by the real judge on the CPU platform.

    python -m tests.stored

It serves rms_norm, asks the server as any client does, and keeps each verdict with its record in
tests/stored/evaluations.json. That takes half a minute. Where an outcome is not the one that a kernel stands for,
nothing is kept: the timing of `noisy` depends on its secret data, and is not noisy in every run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from arena import Client
from arena.results.record import Evaluation
from arena.results.session import Limits
from arena.runs import records
from arena.runs.serve.episodes import ServeSettings, opened
from arena.runs.serve.routes import EpisodeServer
from arena.runs.service.judge_pool import started
from arena.task.corpus.corpora import open_corpora
from arena.task.options import Options
from tests import stored
from tests.candidates import assembled
from tests.stored import OUTCOMES, TASK, StoredEvaluation

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, CHEATS = ROOT / "examples" / "candidates", ROOT / "tests" / "cheats" / "rms_norm"
KERNELS = ROOT / "tests" / "stored" / "kernels"
FILES = {
    "faster": EXAMPLES / "fast" / TASK / "kernel.py",
    "slower": KERNELS / "slower.py",
    "noisy": KERNELS / "noisy.py",
    "wrong": EXAMPLES / "broken" / TASK / "kernel.py",
    "wrong_unseen": EXAMPLES / "hardcoded" / TASK / "kernel.py",
    "compile_error": CHEATS / "syntax_error.py",
    "cheat": CHEATS / "fig_leaf.py",
}
OPTIONS = Options(max_work=2e4, seeds=1)


def kernels(folder: Path) -> dict[str, str | None]:
    """Return the text of each kernel by the outcome that it stands for; None where nothing is handed in."""
    files = {name: assembled(path, folder) if path.parent == CHEATS else path for name, path in FILES.items()}
    return {name: files[name].read_text(encoding="utf-8") if name in files else None for name in OUTCOMES}


@contextmanager
def real_server(run: Path) -> Iterator[Client]:
    """Serve the task with one judge on the CPU platform; records go to the folder `run`."""
    settings = ServeSettings(run, open_corpora(), (TASK,), OPTIONS, Limits(), capacity=1)
    with (
        started("cpu", builds=True) as pool,
        opened(settings, pool) as episodes,
        EpisodeServer(episodes) as server,
        Client(server.address, server.token) as client,
    ):
        yield client


def judged(folder: Path) -> list[StoredEvaluation]:
    """Have each kernel judged in an episode of its own."""
    texts, run, finals = kernels(folder), folder / "run", {}
    with real_server(run) as client:
        for name, text in texts.items():
            finals[name] = client.finish(client.begin(TASK, agent=name).episode, text)
            print(f"{name:14} {finals[name].text}", file=sys.stderr, flush=True)
    trials = {trial.agent: trial for trial in records.read_run(run).trials}
    return [StoredEvaluation(name, text, kept(trials[name].evaluation), finals[name]) for name, text in texts.items()]


def kept(evaluation: Evaluation | None) -> Evaluation | None:
    """Leave out the version of the machine's operating system, which no reward depends on."""
    if evaluation is None:
        return None
    environment = evaluation.environment
    device = replace(environment.device, driver="")
    return replace(evaluation, environment=replace(environment, device=device))


def main() -> None:
    """Have them judged, and keep them if all are what they stand for."""
    with tempfile.TemporaryDirectory() as place:
        found = judged(Path(place))
    problems = [f"{one.name}: {why}" for one in found if (why := stored.problem(one))]
    if problems:
        raise SystemExit("nothing is kept; run it again: " + "; ".join(problems))
    stored.write(found)
    print(f"{len(found)} evaluations in {stored.PLACE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
