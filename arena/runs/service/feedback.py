"""Write the judge's answers to an agent about the seen cases, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from arena.agents.base import Feedback
from arena.processes.error_line import first_error_line
from arena.results.effort import Effort
from arena.results.environment import ratio_heading
from arena.results.failures import spans
from arena.results.portability import KernelUse
from arena.results.profile import CounterTable, Profile
from arena.results.record import Evaluation
from arena.results.session import Evaluated
from arena.results.verdict import Status
from arena.runs.service.content import CaseContent, Content, RefusalContent, TargetContent, content_of

_FIRST_LINE_CHARACTERS = 400
_NONE = "–"
_EMULATED = "Times are those of an emulation on the CPU, not of a GPU."


def feedback(evaluation: Evaluation, evaluated: Evaluated, left: int) -> Feedback:
    """The answer to one call of `./evaluate`; `left` is how many calls remain. Held-out cases are left out."""
    content = content_of(evaluation, evaluated, left)
    return Feedback("\n".join(_text(content)) + "\n", msgspec.json.encode(content), evaluated)


def refusal(text: str) -> Feedback:
    """The answer to a call that was not evaluated, with the reason."""
    return Feedback(f"not evaluated: {text}\n", msgspec.json.encode(RefusalContent(None, text)), None)


def _text(content: Content) -> Iterator[str]:
    yield _first_line(content)
    failures = list(_failures(content.cases))
    if not failures and content.detail != first_error_line(content.detail, _FIRST_LINE_CHARACTERS):
        yield from ("", content.detail)
    if content.compile_log:
        yield from ("", "compiler:", content.compile_log)
    if any(case.status is not Status.NOT_RUN for case in content.cases):
        yield from ("", *_table(content), *_remarks(content))
    yield from failures
    yield from _targets(content.targets)
    yield from _profile(content.profile)
    yield from ("", f"evaluation {content.evaluation}, {content.seconds:.1f} s; {_left(content.left)}")


def _first_line(content: Content) -> str:
    if content.status is Status.PASSED:
        timed = sum(case.speedup is not None for case in content.cases)
        if content.effort is Effort.CORRECTNESS:
            return "passed: every seen case is right; nothing was timed"
        if content.speedup is None or not timed:
            return "passed: no seen case could be timed against the baseline"
        where = ", emulated: no speed of a GPU" if content.emulated else ""
        return f"passed: {content.speedup:.3g}x over the baseline (geometric mean of {timed} seen cases{where})"
    where = f" in {content.stage}" if content.stage else ""
    detail = first_error_line(content.detail, _FIRST_LINE_CHARACTERS)
    return f"{content.status}{where}" + (f": {detail}" if detail else "")


def _table(content: Content) -> Iterator[str]:
    """Columns filled with spaces: fewer tokens than a drawn table."""
    ratio = ratio_heading(content.emulated)
    head = ("case", "sizes", "status", "error/allowed", "baseline µs", "kernel µs", ratio, "of roofline")
    rows = [head, *(_row(case) for case in content.cases)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(case: CaseContent) -> tuple[str, ...]:
    speedup = _NONE
    if case.speedup is not None:
        noisy = " ~" if case.noisy else ""
        speedup = f"{case.speedup:.3g}x [{case.speedup_low:.3g}, {case.speedup_high:.3g}]{noisy}"
    return (
        case.case,
        case.sizes,
        case.status.value,
        _number(case.error_ratio),
        _number(case.baseline_ms, 1000),
        _number(case.kernel_ms, 1000),
        speedup,
        _NONE if case.roofline_fraction is None else f"{case.roofline_fraction:.0%}",
    )


def _number(value: float | None, factor: float = 1.0) -> str:
    if value is None:
        return _NONE
    scaled = value * factor
    return f"{scaled:.0f}" if scaled >= 1000 else f"{scaled:.3g}"


def _remarks(content: Content) -> Iterator[str]:
    if content.emulated and any(case.kernel_ms is not None for case in content.cases):
        yield _EMULATED
    if any(case.noisy for case in content.cases):
        yield "~: the interval stayed wide; the case counts as its lower bound above 1, else as 1 at most."
    streams = [case.case for case in content.cases if case.mode == "stream"]
    if streams:
        yield f"Could not be captured as a device graph, so that launches are part of the time: {', '.join(streams)}."
    untimed = [c.case for c in content.cases if c.status is Status.PASSED and c.kernel_ms is None]
    if untimed and content.status is Status.PASSED:
        yield f"Checked for correctness alone, not timed: {', '.join(untimed)}."


def _failures(cases: Sequence[CaseContent]) -> Iterator[str]:
    """Yield what went wrong, case by case: the worst element, the error of a launch. Repetitions are merged."""
    by_failure: dict[tuple[Status, str], list[str]] = {}
    for case in cases:
        if case.detail:
            by_failure.setdefault((case.status, case.detail), []).append(case.case)
    for index, ((status, detail), names) in enumerate(by_failure.items()):
        trace = "\n" in detail
        yield from [""] if trace or index == 0 else []
        yield f"{spans(names, [case.case for case in cases])} {status}:" + ("\n" if trace else " ") + detail


def _targets(targets: Sequence[TargetContent]) -> Iterator[str]:
    if targets:
        yield from ("", "built for other GPUs, not run there:")
        for target in targets:
            what = f"{target.target}: {target.outcome.replace('_', ' ')}"
            yield what + (f": {first_error_line(target.detail, _FIRST_LINE_CHARACTERS)}" if target.detail else "")
            for use in target.kernels:
                yield f"  {use.kernel}: {_use(use)}"
            if target.machine_code is not None:
                first_line = first_error_line(target.machine_code_detail, _FIRST_LINE_CHARACTERS)
                yield f"  machine code, executed on the CPU: {target.machine_code.replace('_', ' ')}: {first_line}"


def _profile(profile: Profile | None) -> Iterator[str]:
    if profile is not None:
        of = f" of one call on {profile.case}" if profile.case else ""
        yield from ("", f"profile{of}:" + (f" {profile.detail}" if profile.detail else ""))
        for time in profile.kernels:
            launch = f", grid {list(time.grid)} × block {list(time.block)}" if time.grid else ""
            yield f"  {time.kernel}: {time.device_us:.4g} µs in {time.calls} launches{launch}"
        yield from _counters(profile.counters)
        for target, uses in profile.uses.items():
            yield f"  on {target}:"
            for use in uses:
                yield f"    {use.kernel}: {_use(use)}"


def _counters(table: CounterTable | None) -> Iterator[str]:
    """A row for each counter, of the baseline and of the candidate."""
    if table is None:
        return
    yield f"  {f'counters by {table.tool}':<36} {'baseline':>10} {'candidate':>10}"
    yield from (f"    {name:<34} {_figure(one):>10} {_figure(other):>10}" for name, one, other in table.rows())
    if table.detail:
        yield f"    {table.detail}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _use(use: KernelUse) -> str:
    occupancy = "" if use.occupancy is None else f", occupancy at most {use.occupancy:.3g}"
    spills = f", {use.spill_bytes} bytes spilled" if use.spill_bytes else ""
    return f"{use.registers} registers, {use.shared_bytes} bytes of shared memory{spills}{occupancy}"


def _left(left: int) -> str:
    if left <= 0:
        return "none is left"
    return f"{left} {'is' if left == 1 else 'are'} left"
