"""What an agent is told of its kernel: everything of the seen cases, nothing of the held-out ones."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import arena
from arena.results.portability import BuildOutcome, KernelUse, TargetBuild
from arena.results.profile import Counters, CounterTable, KernelTime, Profile
from arena.results.record import CaseResult, Evaluation, Mode, Split
from arena.results.verdict import Stage, Status, Verdict
from arena.runs.service.content import CaseContent, Content, TargetContent
from arena.runs.service.feedback import feedback, refusal
from tests.runs.service.examples import CPU, GOOD, WRONG, evaluated, evaluation, failed, passed

DOCS = Path(arena.__file__).parent.parent / "docs" / "evaluate" / "workspace.md"


def answer(result: Evaluation, left: int = 43) -> tuple[str, dict[str, Any]]:
    made = feedback(result, evaluated(result), left)
    content = json.loads(made.content)
    assert isinstance(content, dict)
    return made.text, content


def test_a_good_kernel_is_told_its_speedup_and_every_case() -> None:
    text, content = answer(GOOD)
    assert text.startswith("passed: 1.82x over the baseline (geometric mean of 2 seen cases)\n")
    assert "M=2048 N=4096 float16" in text
    assert "evaluation 7, 4.2 s; 43 are left" in text
    assert content["speedup"] is not None and abs(content["speedup"] - 1.8224) < 0.001
    assert [case["kernel_ms"] for case in content["cases"]] == [0.0017, 0.0225]
    assert [case["roofline_fraction"] for case in content["cases"]] == [0.25, 0.25]
    assert content["stage"] is None and content["left"] == 43 and content["evaluation"] == 7


def test_a_wrong_kernel_is_told_its_worst_element() -> None:
    text, content = answer(WRONG)
    assert text.startswith(
        "wrong_result in correctness: M=2048 N=4096 float16: y: 16 of 8388608 elements wrong, [3, 16]"
    )
    assert "seen-02 wrong_result: y: 16 of 8388608 elements wrong" in text
    assert content["status"] == "wrong_result" and content["stage"] == "correctness" and content["speedup"] is None
    assert content["cases"][1]["error_ratio"] == 41.7 and content["cases"][1]["kernel_ms"] is None


def test_heldout_cases_are_left_out() -> None:
    hidden = CaseResult("heldout-01", Split.HELDOUT, "edge", "M=1 N=1 float32", Status.PASSED, Status.CRASH, "secret")
    verdicts = (*GOOD.verdicts, Verdict(Stage.HELDOUT, Status.CRASH, "M=1 N=1 float32: secret"))
    text, content = answer(replace(GOOD, cases=(*GOOD.cases, hidden), verdicts=verdicts))
    for told in (text, json.dumps(content)):
        assert "secret" not in told and "M=1 N=1" not in told and "heldout" not in told
    assert (text, content) == answer(GOOD)


def test_a_compilers_words_are_told_from_both_ends() -> None:
    log = "\n".join(f"kernel.hip:{line}: note {line}" for line in range(1000))
    result = evaluation(fails=Verdict(Stage.COMPILE, Status.COMPILE_ERROR, f"for float32: error: first\n{log}\nlast"))
    text, content = answer(result)
    assert text.startswith("compile_error in compile: for float32: error: first\n")
    assert "lines left out" in text and "\nlast" in text and len(text) < 10_000
    assert content["detail"].splitlines()[-1] == "last"
    assert "case " not in text


def test_what_many_cases_say_is_told_once() -> None:
    trace = 'Traceback (most recent call last):\n  File "kernel.py", line 3, in rms_norm\nValueError: no such block'
    cases = [failed(number, f"M={number}", Status.LAUNCH_ERROR, trace) for number in (1, 2, 3)]
    other = failed(4, "M=4", Status.WRONG_RESULT, "y: all 4 elements wrong", 2.0)
    fails = Verdict(Stage.CORRECTNESS, Status.LAUNCH_ERROR, f"M=1: {trace}")
    text, content = answer(evaluation(*cases, other, fails=fails))
    assert text.startswith("launch_error in correctness: ValueError: no such block\n")
    assert f"seen-01 … seen-03 launch_error:\n{trace}\n" in text
    assert text.count("line 3, in rms_norm") == 1
    assert "seen-04 wrong_result: y: all 4 elements wrong" in text
    assert [case["detail"] for case in content["cases"][:3]] == [trace] * 3


def test_warnings_of_the_compiler_are_told() -> None:
    text, content = answer(replace(GOOD, compile_log="kernel.hip:3: warning: unused variable\n"))
    assert "compiler:\nkernel.hip:3: warning: unused variable\n" in text
    assert content["compile_log"] == "kernel.hip:3: warning: unused variable"


def test_doubts_are_said() -> None:
    text, _ = answer(GOOD)
    assert "1.84] ~ " in text and "the interval stayed wide" in text
    text, content = answer(evaluation(passed(1, "M=4", 1.0, 0.5, mode=Mode.STREAM), device=CPU))
    assert "an emulation on the CPU" in text and "Could not be captured as a device graph" in text
    assert content["emulated"] and content["cases"][0]["mode"] == "stream"


def test_a_case_without_a_right_baseline_is_not_timed() -> None:
    untimed = CaseResult("seen-01", Split.SEEN, "", "M=4", Status.WRONG_RESULT, Status.PASSED, error_ratio=0.5)
    text, _ = answer(evaluation(untimed))
    assert text.startswith("passed: no seen case could be timed")
    assert "Checked for correctness alone, not timed: seen-01" in text


def test_an_error_without_bound_is_no_number_in_json() -> None:
    result = evaluation(
        failed(1, "M=4", Status.WRONG_RESULT, "y: error is inf × tolerance", float("inf")),
        fails=Verdict(Stage.CORRECTNESS, Status.WRONG_RESULT, "M=4: y: error is inf × tolerance"),
    )
    text, content = answer(result)
    assert content["cases"][0]["error_ratio"] is None and "inf × tolerance" in text


def test_other_gpus_and_profiles_are_told() -> None:
    use = KernelUse("rms", 40, 2048, 16, 24, 0.5)
    built = TargetBuild("gfx942", BuildOutcome.BUILT, builds=1, asked=1, kernels=(use,))
    profile = Profile("M=4 N=256", (KernelTime("rms", 2, 12.5, (8, 1, 1), (256, 1, 1)),), uses={"gfx942": (use,)})
    text, content = answer(replace(GOOD, targets=(built,), profile=profile))
    assert (
        "gfx942: built\n  rms: 40 registers, 2048 bytes of shared memory, 16 bytes spilled, occupancy at most 0.5"
        in text
    )
    assert "profile of one call on M=4 N=256:\n  rms: 12.5 µs in 2 launches, grid [8, 1, 1] × block [256, 1, 1]" in text
    assert content["targets"][0]["kernels"][0]["registers"] == 40
    assert content["profile"]["kernels"][0]["device_us"] == 12.5


def test_a_refusal_has_no_verdict() -> None:
    made = refusal("all 50 evaluations are used up")
    assert made.text == "not evaluated: all 50 evaluations are used up\n" and made.evaluated is None
    assert json.loads(made.content) == {"status": None, "detail": "all 50 evaluations are used up"}


def test_the_last_evaluation_says_so() -> None:
    assert answer(GOOD, left=0)[0].endswith("none is left\n") and answer(GOOD, left=1)[0].endswith("1 is left\n")


def test_the_documentation_shows_what_is_said() -> None:
    """Where the form changes on purpose, put what is said now into the two blocks of docs/evaluate/workspace.md."""
    docs = DOCS.read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(text|json)\n(.*?)^```$", docs, re.MULTILINE | re.DOTALL))
    text, content = answer(WRONG)
    assert blocks["text"] == text
    assert json.loads(blocks["json"]) == content


def test_the_documentation_names_every_field() -> None:
    docs = DOCS.read_text(encoding="utf-8")
    table = docs.partition("| field |")[2]
    cells = re.findall(r"^\| (`[^|]+`) \|", table.partition("\n## ")[0], re.MULTILINE)
    described = {name for cell in cells for name in re.findall(r"`([\w.\[\]]+)`", cell)}
    expected = {field.name for field in fields(Content)}
    for prefix, kind in (("cases[]", CaseContent), ("targets[]", TargetContent), ("targets[].kernels[]", KernelUse)):
        expected |= {f"{prefix}.{field.name}" for field in fields(kind)}
    expected |= {f"profile.{field.name}" for field in fields(Profile)}
    expected |= {f"profile.kernels[].{field.name}" for field in fields(KernelTime)}
    expected |= {f"profile.counters.{field.name}" for field in fields(CounterTable)}
    expected |= {f"profile.counters.candidate.{field.name}" for field in fields(Counters)}
    assert described == expected
