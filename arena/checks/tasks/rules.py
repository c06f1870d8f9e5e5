"""The rules over the cases of a task that its definition alone decides, at both levels of a corpus.

`arena/task/rules.py` names them; docs/contribute/check-failures.md says what to do where one is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from arena.checks.tasks.offsets import tensors_without_large_case
from arena.judge.selection import cpu_cases
from arena.platforms.peaks import find_peaks
from arena.results.check import CheckItem, CheckOutcome
from arena.results.messages import message, within
from arena.results.record import LONG_MS, Split
from arena.task.corpus.scaffolding import places, unfinished
from arena.task.declaration import Axis
from arena.task.definition import FLOATING, LARGE_ELEMENTS, Case, ScalarSpec, Task, TensorSpec, arguments
from arena.task.options import CPU_MAX_WORK
from arena.task.rules import (
    CPU_REACH,
    LEAST_HELDOUT,
    LEAST_HELDOUT_KINDS,
    LEAST_KINDS,
    OFFSETS_OF,
    REACH,
    STRUCTURAL,
    TILES,
    RuleLevel,
    level_of_rule,
    reason_for,
)

LEAST_TIMED, MOST_TIMED = 2, 5
_LEAST_SMALL = 2


def rule_items(task: Task, level: RuleLevel, duplicate: str = "") -> Iterator[CheckItem]:
    """Yield an item for each rule, and one for exceptions from rules that are kept.

    Args:
        task: The task.
        level: Of its corpus. At `own`, what breaks a strict rule is not a failure.
        duplicate: A task that is the same but for the name, or empty.
    """
    problems = {**dict(_own_rules(task, duplicate)), **dict(_strict_rules(task))}
    for name, problem in problems.items():
        yield rule_item(task, level, name, problem)
    kept = [name for name, problem in problems.items() if not problem and name in task.exceptions]
    if kept:
        detail = message("check_exception_unneeded", names=", ".join(map(repr, kept)))
        yield CheckItem("exceptions", CheckOutcome.FAILED, detail)
    else:
        yield CheckItem("exceptions", CheckOutcome.PASSED)


def rule_item(task: Task, level: RuleLevel, name: str, problem: str, seen: str = "") -> CheckItem:
    """Return the item of one rule.

    Args:
        task: The task.
        level: Of its corpus.
        name: The rule.
        problem: What breaks it, or an empty string.
        seen: What was seen where nothing does.
    """
    if not problem:
        return CheckItem(name, CheckOutcome.PASSED, seen)
    reason = reason_for(task.exceptions, name)
    if reason:
        return CheckItem(name, CheckOutcome.DECLARED, reason)
    if level is RuleLevel.OWN and level_of_rule(name) is RuleLevel.STRICT:
        return CheckItem(name, CheckOutcome.NOT_CHECKED, within("only_at_strict", problem))
    return CheckItem(name, CheckOutcome.FAILED, problem)


def _own_rules(task: Task, duplicate: str) -> Iterator[tuple[str, str]]:
    """Yield what every task is held to: the rule, and what breaks it, or an empty string."""
    left = unfinished(task.path)
    yield "finished", message("check_unfinished", count=len(left), places=places(left)) if left else ""
    yield "kinds", _few_kinds(task)
    yield "timed cases", _timed(task)
    yield "axes vary", _pinned(task)
    yield "small cases", _too_few_small(task)
    yield "unlike others", message("check_duplicate", other=duplicate) if duplicate else ""


def _strict_rules(task: Task) -> Iterator[tuple[str, str]]:
    """Yield what a strict corpus demands besides."""
    for axis in task.axes:
        greatest = max(int(case.values[axis.name]) for case in task.cases)
        detail = message("check_axis_reach", axis=axis.name, greatest=greatest, high=axis.high)
        yield f"reach of {axis.name}", detail if axis.high > REACH * greatest else ""
    yield from _cpu_reach(task)
    kinds = Counter(case.kind for case in task.heldout)
    few = message("check_few_heldout", found=len(task.heldout), least=LEAST_HELDOUT)
    yield "held-out cases", few if len(task.heldout) < LEAST_HELDOUT else ""
    yield "held-out kinds", _few_kinds(task, LEAST_HELDOUT_KINDS)
    for kind in ("production", "scale_up"):
        yield f"{kind} case", "" if kinds[kind] else message("check_kind_missing", kind=kind)
    kept = task.latency_bound or any(case.kind in STRUCTURAL and takes_long(task, case) for case in task.heldout)
    yield "long structural case", "" if kept else message("check_no_long_case", kinds=", ".join(STRUCTURAL))
    large = dict(tensors_without_large_case(task))
    for spec in task.tensors:
        most = large.get(spec.name, 0)
        detail = message("check_offset_reach", name=spec.name, most=most, least=LARGE_ELEMENTS)
        if most or f"{OFFSETS_OF}{spec.name}" in task.exceptions:
            yield f"{OFFSETS_OF}{spec.name}", detail if most else ""
    drawn = not has_numbers(task) or any(case.fills for case in task.heldout)
    yield "values case", "" if drawn else message("check_no_fills")


def _cpu_reach(task: Task) -> Iterator[tuple[str, str]]:
    """Yield the rules of each axis on the CPU platform: a kernel that takes few of its sizes is wrong in some case."""
    small = cpu_cases(task)
    for axis in task.axes:
        sizes = {int(case.values[axis.name]) for case in small}
        if axis.values:
            left = sorted(set(axis.values) - sizes)
            detail = message("check_axis_sizes", axis=axis.name, sizes=", ".join(map(str, left)))
            yield f"sizes of {axis.name}", detail if left else ""
        elif axis.default is None:
            greatest, least = max(sizes, default=0), min(CPU_REACH + 1, axis.high)
            detail = message("check_axis_reach_cpu", axis=axis.name, greatest=greatest, least=least)
            yield f"CPU reach of {axis.name}", detail if greatest < least else ""
            halves = {tile for tile in TILES if any(size % (2 * tile) == tile for size in sizes)}
            wanting = [str(tile) for tile in TILES if tile not in halves and _admits_half_tile(axis, tile)]
            detail = message("check_axis_tiles", axis=axis.name, sizes=" and of ".join(wanting))
            yield f"tiles of {axis.name}", detail if wanting else ""


def _admits_half_tile(axis: Axis, tile: int) -> bool:
    """Return whether the domain has an odd multiple of `tile`: its remainders repeat after `2 * tile * multiple_of`."""
    most = min(axis.high, axis.low + 2 * tile * axis.multiple_of)
    return any(axis.admits(size) for size in range(tile, most + 1, 2 * tile))


def _few_kinds(task: Task, least: int = LEAST_KINDS) -> str:
    kinds = Counter(case.kind for case in task.heldout)
    if len(kinds) >= least:
        return ""
    return message("check_few_kinds", found=len(kinds), kinds=", ".join(sorted(kinds)), least=least)


def takes_long(task: Task, case: Case) -> bool:
    """Return whether a call takes 20 µs or more on an H200.

    A timed case does, by the item `long enough` of `arena tasks check`, and so does what moves and computes no less.
    Of others the roofline decides.
    """
    if case.timed:
        return True
    worked_out = arguments(task, case)
    timed = [arguments(task, other) for other in task.cases if other.timed]
    if any(worked_out.num_bytes >= other.num_bytes and worked_out.flops >= other.flops for other in timed):
        return True
    peaks = find_peaks("NVIDIA H200", "sm_90")
    assert peaks is not None
    rate = peaks.tflops.get(worked_out.number_format, peaks.tflops["float32"])
    least_s = max(worked_out.num_bytes / (peaks.bandwidth_gbs * 1e9), worked_out.flops / (rate * 1e12))
    return least_s >= LONG_MS / 1e3


def has_numbers(task: Task) -> bool:
    """Return whether an input may be of a floating-point dtype."""
    for spec in task.inputs:
        if isinstance(spec, TensorSpec):
            choices = task.dtypes[spec.dtype[1:]] if spec.dtype.startswith("$") else (task.format(spec.dtype),)
            if any(task.format(dtype) in FLOATING for dtype in choices):
                return True
    return False


def _timed(task: Task) -> str:
    """Speed is measured on two to five cases of each split; more only cost time."""
    for split, cases in ((Split.SEEN, task.seen), (Split.HELDOUT, task.heldout)):
        timed = sum(case.timed and not case.regime for case in cases)
        if not LEAST_TIMED <= timed <= MOST_TIMED:
            return message("check_timed_cases", found=timed, split=split, least=LEAST_TIMED, most=MOST_TIMED)
    return ""


def _pinned(task: Task) -> str:
    """An axis that never changes is a constant of the task, whatever its domain says."""
    for axis in task.axes:
        taken = {case.values[axis.name] for case in task.cases}
        if len(taken) == 1 and axis.low != axis.high:
            value, domain = taken.pop(), axis.domain_text
            return message("check_axis_constant", axis=axis.name, value=value, domain=domain)
    for spec in task.inputs:
        if isinstance(spec, ScalarSpec) and all(
            case.values.get(spec.name, spec.value) == spec.value for case in task.cases
        ):
            return message("check_scalar_constant", name=spec.name, value=spec.value)
    return ""


def _too_few_small(task: Task) -> str:
    found = Counter(case.split for case in cpu_cases(task))
    for split in (Split.SEEN, Split.HELDOUT):
        if found[split] < _LEAST_SMALL:
            few = {"found": found[split], "split": split, "limit": CPU_MAX_WORK, "least": _LEAST_SMALL}
            return message("check_few_small_cases", **few)
    return ""
