"""Neighbours of kernels, and verdicts on them: copies are found, unrelated kernels are not, hostile text stays text."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.errors import FileError, UsageError
from arena.reports.fingerprints import fingerprints, tokens
from arena.reports.kernel_verdicts import VerdictOnKernel, digest_of, read_verdicts, verdicts_path, write_template
from arena.reports.site import write_site
from arena.reports.site_entries import read_entries
from arena.runs.records import submission_folder
from arena.task.corpus.task_folder import TASKS
from tests.reports.builders import run, trial
from tests.reports.test_site import EVIL, kept, no_report

RMS = TASKS / "triton2triton/normalization/rms_norm/kernel.py"
HIP = sorted((TASKS / "hip2hip").glob("*/*/kernel.hip"))


def share(one: str, two: str, suffix: str) -> float:
    mine = fingerprints(one, suffix)
    return len(mine & fingerprints(two, suffix)) / len(mine)


def disguised(text: str, names: list[str]) -> str:
    for number, name in enumerate(names):
        text = re.sub(rf"(?<![\w.]){name}\b", f"other_{number}", text)
    return text


def test_a_renamed_and_reformatted_copy_is_found() -> None:
    text = RMS.read_text(encoding="utf-8")
    names = re.findall(r"^ +(\w+) = ", text, re.MULTILINE)
    copy = "# mine\n" + disguised(text, names).replace(", ", ",\n        ").replace(" = ", "   =  ")
    assert len(set(names)) > 3 and share(copy, text, ".py") > 0.95
    text = HIP[0].read_text(encoding="utf-8")
    names = re.findall(r"\b(?:int|float) (\w+) =", text)
    copy = "/* mine */ " + disguised(text, names).replace(";\n", "; // here\n\n\t")
    assert names and share(copy, text, ".hip") > 0.95


def test_unrelated_kernels_share_less_than_a_fifth() -> None:
    other = TASKS / "triton2triton/attention"
    attention = next(iter(sorted(other.glob("*/kernel.py")))).read_text(encoding="utf-8")
    assert share(RMS.read_text(encoding="utf-8"), attention, ".py") < 0.2
    assert share(HIP[0].read_text(encoding="utf-8"), HIP[-1].read_text(encoding="utf-8"), ".hip") < 0.2


def test_comments_docstrings_and_layout_are_no_tokens() -> None:
    assert tokens('"""Doc."""\ndef f(x):\n    """Doc."""\n    return tl.load(x)  # so\n', ".py") == tokens(
        "def g(\n  y\n): return tl.load(y)", ".py"
    )
    assert tokens("int a = b; // c\n/* d */", ".hip") == tokens("int\nq=w ;", ".hip")
    assert fingerprints("/* " * 50_000, ".hip") == frozenset()


def made(root: Path) -> Path:
    """A run of two agents: one hands in a copy of a folder's file, one an unrelated kernel."""
    task = "triton2triton/normalization/rms_norm"
    folder = kept(root, run([trial(task, agent="alpha"), trial(task, agent="beta")]))
    texts = {"alpha": HIDDEN.replace("row", "line"), "beta": "x = 1\n"}
    for agent, text in texts.items():
        place = submission_folder(folder, agent, task, 1)
        place.mkdir(parents=True)
        (place / "kernel.py").write_text(text, encoding="utf-8")
    return folder


HIDDEN = "\n".join(f"def part_{i}(row):\n    return (row + {i}) * row - abs(row) / {i + 3}\n" for i in range(20))


def test_the_command_lists_neighbours_and_writes_a_template(tmp_path: Path) -> None:
    folder, source = made(tmp_path), tmp_path / EVIL.replace("/", "")[:40]
    source.mkdir()
    (source / "<b>hidden.py").write_text(HIDDEN, encoding="utf-8")
    (source / "link.py").symlink_to(source / "<b>hidden.py")
    (source / "bytes.py").write_bytes(b"\xff\xfe")
    file = verdicts_path(tmp_path, folder.name)
    command = ["audit", str(folder), "--against", str(source), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*command, "--json", "--verdicts", str(file)])
    assert done.exit_code == 0, done.output
    assert "1 files compared, 2 skipped" in done.stderr
    first, second = msgspec.json.decode(done.stdout)
    assert first["neighbours"][0]["name"].endswith("hidden.py") and first["neighbours"][0]["shared"] > 0.9
    assert first["own_baseline"] < 0.2 and first["machine_code"] == "not recorded" and second["neighbours"] == []
    page = (tmp_path / "out/audit.md").read_text(encoding="utf-8")
    assert "<b>" not in page and "<script" not in page and "not read" in page
    assert "hidden.py" in (tmp_path / "out/audit.csv").read_text(encoding="utf-8")
    with pytest.raises(FileError, match=r"verdicts.yaml:3: `by`"):
        read_verdicts(file)
    with pytest.raises(UsageError, match="exists"):
        write_template(file, [])


def written(folder: Path, verdict: str, note: str = "") -> Path:
    data = (submission_folder(folder, "alpha", "triton2triton/normalization/rms_norm", 1) / "kernel.py").read_bytes()
    path = verdicts_path(folder.parent, folder.name)
    path.unlink(missing_ok=True)
    one = VerdictOnKernel(digest_of(data), "alpha", "triton2triton/normalization/rms_norm", None, note)
    write_template(path, [one])
    text = path.read_text(encoding="utf-8").replace('by: ""', 'by: "A. Reader"').replace("YYYY-MM-DD", "2026-01-02")
    path.write_text(text.replace("verdict: null", f"verdict: {verdict}"), encoding="utf-8")
    return path


def test_the_site_shows_verdicts_beside_the_agent(tmp_path: Path) -> None:
    folder, findings = made(tmp_path), tmp_path / "findings"
    findings.mkdir()
    file = written(folder, "copied", EVIL)
    file.rename(findings / file.name)
    index = write_site(read_entries([folder], findings), tmp_path / "site", no_report)
    assert "kernels read: 1 copied" in index.read_text(encoding="utf-8")
    (page,) = (tmp_path / "site/agents").glob("alpha*.html")
    text = page.read_text(encoding="utf-8")
    assert "A. Reader" in text and "&lt;script&gt;alert" in text and "<script>alert" not in text


def test_only_findings_say_what_a_person_found(tmp_path: Path) -> None:
    """What lies beside a run may be the submitter's: a run is unpacked with all that came with it."""
    folder, findings = made(tmp_path), tmp_path / "findings"
    findings.mkdir()
    file = written(folder, "clean")
    command = ["audit", str(folder), "--out", str(tmp_path / "out"), "--json", "--findings", str(findings)]
    assert "clean" not in CliRunner().invoke(app, command).stdout
    file.rename(findings / file.name)
    assert "clean" in CliRunner().invoke(app, command).stdout


def test_a_malformed_file_of_verdicts_names_its_line(tmp_path: Path) -> None:
    path = written(made(tmp_path), "guilty")
    with pytest.raises(FileError, match=r"verdicts.yaml:\d+: `kernels.0.verdict`"):
        read_verdicts(path)
    path = written(tmp_path / "r1", "bug")
    text = path.read_text(encoding="utf-8")
    entry = text.split("kernels:\n")[1]
    path.write_text(text + entry, encoding="utf-8")
    with pytest.raises(FileError, match="twice"):
        read_verdicts(path)
    path.write_text(text.replace("note:", "remark:"), encoding="utf-8")
    with pytest.raises(FileError, match="remark"):
        read_verdicts(path)
