"""What reaches a terminal or a pipe: no text of a candidate's gives orders to it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.markup import escape
from rich.table import Table
from typer.testing import CliRunner

from arena.cli import console, main
from arena.cli.app import app
from arena.cli.console import PrintableConsole
from arena.errors import UsageError
from tests.faults.runs import RMS_NORM, in_python

HOSTILE = "=1+1 \x1b[2J\x1b]0;passed\x07\x9b31m\u202edessap\rend"
RAISES = in_python(f"print({HOSTILE!r})\nraise ValueError({HOSTILE!r})")
CONFIG = """
name: hostile
platform: cpu
tasks: [rms_norm]
attempts: 1
agents: [{{name: hostile, kind: replay, folder: {folder}}}]
evaluation: {{max_work: 2.0e+4, seeds: 1, timing_budget_s: 0.02, call_timeout_s: 20}}
"""


def harmless(text: str) -> bool:
    """Whether nothing but letters, tabs and line ends is in it."""
    return not [c for c in text if (ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 or c in "\u202e"]


@pytest.mark.parametrize("terminal", [False, True])
def test_text_gives_no_orders_and_colours_stay(terminal: bool) -> None:
    file = io.StringIO()
    table = Table(HOSTILE, title=escape(HOSTILE))
    table.add_row(escape(HOSTILE), style="red")
    shown = PrintableConsole(
        file=file, force_terminal=terminal, color_system="standard" if terminal else None, width=90
    )
    shown.print(HOSTILE, markup=False)
    shown.print(f"[green]{escape(HOSTILE)}[/green]")
    shown.print(table)
    text = file.getvalue()
    assert "passed" in text and "\x1b[2J" not in text and "\x1b]0" not in text and "\x9b" not in text
    assert ("\x1b[" in text) is terminal and (terminal or harmless(text))


def test_json_for_machines_holds_no_control_codes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    console.print_json({"detail": HOSTILE})
    assert harmless(capfdbinary.readouterr().out.decode())


def test_an_error_gives_no_orders(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(standalone_mode: bool) -> None:
        raise UsageError(HOSTILE)

    monkeypatch.setattr("arena.cli.app.app", fail)
    with pytest.raises(SystemExit):
        main()
    assert "passed" in (said := capsys.readouterr().err) and harmless(said)


@pytest.mark.slow
def test_evaluate_prints_no_control_codes(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(RAISES, encoding="utf-8")
    quick = ["--platform", "cpu", "--max-work", "2e4", "--seeds", "1", "--no-heldout"]
    for form in ([], ["--json"]):
        done = CliRunner().invoke(app, ["evaluate", RMS_NORM, str(file), *quick, *form])
        assert done.exit_code == 1 and "launch_error" in done.output and "1+1" in done.output
        assert harmless(done.output)


@pytest.mark.slow
def test_a_run_and_its_report_hold_no_control_codes(tmp_path: Path) -> None:
    folder = tmp_path / "handed_in"
    (folder / RMS_NORM).mkdir(parents=True)
    (folder / RMS_NORM / "kernel.py").write_text(RAISES, encoding="utf-8")
    config = tmp_path / "hostile.yaml"
    config.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    places = ["--runs-dir", str(tmp_path / "runs"), "--reports-dir", str(tmp_path / "reports")]
    done = CliRunner().invoke(app, ["run", str(config), *places])
    assert done.exit_code == 0 and harmless(done.output)
    written = [path for path in (tmp_path / "reports").rglob("*") if path.suffix in {".html", ".md", ".csv", ".json"}]
    assert len(written) >= 4 and any("launch_error" in path.read_text(encoding="utf-8") for path in written)
    for path in [*written, *(tmp_path / "runs").rglob("trials/**/*.json")]:
        assert harmless(path.read_text(encoding="utf-8")), path
