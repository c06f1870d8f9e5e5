"""`arena doctor --self-test`: each item as it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.markup import escape

from arena.cli.console import err, out, print_json
from arena.judge.self_test.evidence import ItemOutcome, ItemResult

_COLOURS = {
    ItemOutcome.PASS: "green",
    ItemOutcome.WARNING: "yellow",
    ItemOutcome.FAIL: "red",
    ItemOutcome.SKIPPED: "dim",
}


def show(platform: str, only: Sequence[str], *, as_json: bool) -> bool:
    """Run the self-test and print it; whether no item failed."""
    from arena.judge.self_test.running import self_test

    with err.status("looking at the device") as status:

        def ended(result: ItemResult) -> None:
            if not as_json:
                out.print(line(result), soft_wrap=True)
            status.update(f"after {result.name}")

        results = self_test(platform, ended, only)
    if as_json:
        print_json(results)
    else:
        out.print(total(results))
    return all(result.outcome is not ItemOutcome.FAIL for result in results)


def line(result: ItemResult) -> str:
    """An item: how it ended, its name, seconds, and what was seen."""
    colour = _COLOURS[result.outcome]
    mark = f"[{colour}]{result.outcome:<8}[/{colour}]"
    return f"{mark} {escape(result.name):<26} {result.seconds:5.1f} s  {escape(result.seen)}"


def total(results: Sequence[ItemResult]) -> str:
    """How many ended how, and how long it took."""
    counts = Counter(result.outcome for result in results)
    words = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ItemOutcome if counts[outcome])
    return f"{words} in {sum(result.seconds for result in results):.0f} s"
