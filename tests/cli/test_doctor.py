"""`arena doctor`: rows for what this machine can compile for, and the output of --quick and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest
from typer.testing import CliRunner

from arena.checks.doctor import quick
from arena.checks.doctor.evidence import ItemOutcome, ItemResult
from arena.checks.doctor.inventory import of_ability
from arena.cli.app import app
from arena.cli.doctor_output import item_counts, item_line
from arena.errors import UsageError
from arena.platforms.cross.compilers import Ability

GOOD = ItemResult("device facts", ItemOutcome.PASS, "AMD Instinct MI300X [gfx942]", 2.5)
DOUBTFUL = ItemResult("isolation of hosts", ItemOutcome.WARNING, "no mount", 0.1)
BAD = ItemResult("two clocks", ItemOutcome.FAIL, "judge 0.2 ms, host 0.4 ms", 0.0)
LACKING = ItemResult("HIP for AMD GPUs", ItemOutcome.SKIPPED, "missing: clang++", 0.0)


class Prepared:
    """Stands in for `quick.run_quick`: tells of the same results whatever the machine."""

    def __init__(self, *results: ItemResult) -> None:
        self.results = results
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def __call__(
        self, platform: str, on_result: Callable[[ItemResult], None], only: Sequence[str]
    ) -> tuple[ItemResult, ...]:
        self.asked.append((platform, tuple(only)))
        for result in self.results:
            on_result(result)
        return self.results


def test_abilities_are_named_target_by_target() -> None:
    check = of_ability(Ability("hip", "amd", ("gfx90a", "gfx942"), "hip-clang: clang 22"))
    assert check.present and check.name == "HIP for AMD GPUs"
    assert check.found == "can compile for: gfx90a, gfx942 (hip-clang: clang 22)"


def test_what_is_lacking_is_named_with_its_package() -> None:
    check = of_ability(Ability("triton", "nvidia", missing="Triton is not installed: `pip install triton`"))
    assert not check.present and not check.needed
    assert check.name == "Triton for NVIDIA GPUs" and "pip install triton" in check.cost


def test_doctor_has_a_row_for_each_language_and_vendor() -> None:
    shown = CliRunner().invoke(app, ["doctor", "--json"])
    rows = {check["name"]: check for check in msgspec.json.decode(shown.stdout)}
    for name in ("HIP for AMD GPUs", "HIP for NVIDIA GPUs", "Triton for AMD GPUs", "Triton for NVIDIA GPUs"):
        assert rows[name]["present"] == rows[name]["found"].startswith("can compile for: ")
    assert {"g++ (cpu)", "nvcc (nvidia)", "hipcc (amd)"} <= rows.keys()


def test_help_shows_the_quick_test() -> None:
    shown = CliRunner().invoke(app, ["doctor", "--help"])
    assert "arena doctor --quick --platform rocm" in shown.output.split("Examples")[-1]


@pytest.mark.parametrize(("results", "code"), [((GOOD, DOUBTFUL, LACKING), 0), ((GOOD, BAD), 1)])
def test_the_exit_code_says_whether_an_item_failed(
    monkeypatch: pytest.MonkeyPatch, results: tuple[ItemResult, ...], code: int
) -> None:
    prepared = Prepared(*results)
    monkeypatch.setattr(quick, "run_quick", prepared)
    shown = CliRunner().invoke(app, ["doctor", "--quick", "--platform", "cpu", "--item", "clocks"])
    assert shown.exit_code == code and prepared.asked == [("cpu", ("clocks",))]
    for result in results:
        assert result.name in shown.stdout and result.seen in shown.stdout


def test_json_is_nothing_but_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "run_quick", Prepared(GOOD, BAD))
    shown = CliRunner().invoke(app, ["doctor", "--quick", "--json"])
    assert shown.exit_code == 1
    assert msgspec.json.decode(shown.stdout, type=list[ItemResult]) == [GOOD, BAD]


def test_lines_are_read_by_people() -> None:
    assert item_line(GOOD).endswith("2.5 s  AMD Instinct MI300X \\[gfx942]")
    assert item_counts((GOOD, BAD, GOOD, LACKING)) == "2 pass, 1 fail, 1 skipped in 5 s"


def test_one_kind_at_a_time() -> None:
    shown = CliRunner().invoke(app, ["doctor", "--quick", "--timing"])
    assert isinstance(shown.exception, UsageError) and "exclude each other" in str(shown.exception)
