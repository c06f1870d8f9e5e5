"""How long does one gated evaluation take with a warm judge and nothing built: five seen cases, no held-out stage.

    python tools/evaluation_cost.py --platform cuda                  eight tasks of all types
    python tools/evaluation_cost.py --platform cuda 'hip2hip/*'      these

For each task, the starting kernel and the expert are evaluated as candidates. The judge has met the task before, so
that the baseline is known; the candidate's text is made unique, so that no cache has seen it.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import yaml

from arena.corpus.corpora import open_corpora
from arena.corpus.selection import select
from arena.corpus.task_folder import SHARED, TASKS, load_task
from arena.judge.client import JudgeClient
from arena.judge.messages import Options
from arena.model.record import Evaluation
from arena.model.task import Task

CASES = 5
OPTIONS = Options(heldout=False)
CHOSEN = (
    "triton2triton/normalization/rms_norm",
    "triton2triton/attention/decode_attn_stage1",
    "triton2triton/moe/fused_moe",
    "triton2triton/gemm/awq_gemm",
    "hip2hip/modules/softmax",
    "hip2hip/modules/silu",
    "torch2hip/modules/cross_entropy_label_smoothing",
    "torch2hip/modules/silu",
)
PARTS = ("build", "compile", "correctness", "performance")


def with_five_cases(task: Task, root: Path) -> Task:
    """A copy of a task with the first and the last of its seen cases, five in all."""
    folder = root / task.id
    shutil.copytree(task.path, folder)
    definition = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8"))
    if SHARED in definition:  # the task that it has its operator from
        shutil.copytree(TASKS / definition[SHARED], root / definition[SHARED], dirs_exist_ok=True)
    lines = (folder / "seen.yaml").read_text(encoding="utf-8").splitlines()
    cases = [line for line in lines if line.startswith("-")]
    assert len(cases) == len(task.seen), f"{task.id}: a case a line is expected"
    kept = cases[: CASES - 2] + cases[-2:]
    (folder / "seen.yaml").write_text("\n".join(kept) + "\n", encoding="utf-8")
    return load_task(folder)


def unseen_copy(candidate: Path, folder: Path) -> Path:
    """The candidate with a comment nobody has compiled before."""
    mark = "#" if candidate.suffix == ".py" else "//"
    copy = folder / f"candidate{candidate.suffix}"
    copy.write_text(f"{candidate.read_text(encoding='utf-8')}\n{mark} {time.time_ns()}\n", encoding="utf-8")
    return copy


def measure(judge: JudgeClient, task: Task, folder: Path) -> list[tuple[str, float, Evaluation]]:
    """Seconds of each candidate's evaluation, the first of which only teaches the judge the baseline."""
    candidates = [path for path in (task.baseline_kernel, task.expert) if path is not None]
    if not candidates:
        return []
    judge.evaluate(task.path, unseen_copy(candidates[0], folder), OPTIONS)
    found = []
    for candidate in candidates:
        copy = unseen_copy(candidate, folder)
        started = time.monotonic()
        evaluation = judge.evaluate(task.path, copy, OPTIONS)
        found.append((candidate.stem, time.monotonic() - started, evaluation))
    return found


def main() -> None:
    """Print a line per evaluation and the distribution."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    parser.add_argument("tasks", nargs="*", default=CHOSEN, help="names or patterns")
    options = parser.parse_args()
    totals, parts = [], {name: [] for name in PARTS}  # type: tuple[list[float], dict[str, list[float]]]
    with tempfile.TemporaryDirectory() as place, JudgeClient(options.platform) as judge:
        for name_of_task in select(open_corpora().ids, options.tasks):
            task = load_task(TASKS / name_of_task)
            short = with_five_cases(task, Path(place) / "tasks")
            for name, seconds, evaluation in measure(judge, short, Path(place)):
                totals.append(seconds)
                for part in PARTS:
                    parts[part].append(evaluation.seconds.get(part, 0.0))
                split = ", ".join(f"{part} {evaluation.seconds.get(part, 0.0):.2f}" for part in PARTS)
                print(f"{seconds:6.2f} s  {evaluation.status:<10} {name:<7} {task.id}  ({split})", flush=True)
    quartiles = statistics.quantiles(totals, n=4) if len(totals) > 1 else totals
    cuts = [min(totals), *quartiles, max(totals)]
    print(f"{len(totals)} evaluations, seconds (least, quartiles, most): {', '.join(f'{cut:.2f}' for cut in cuts)}")
    for part, seconds_of_part in parts.items():
        print(f"    {part:<12} median {statistics.median(seconds_of_part):.2f}, most {max(seconds_of_part):.2f}")


if __name__ == "__main__":
    main()
