"""One strict loader: every fault names file, line and key, and what was expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arena.checks.tasks.mutants.base import Fault
from arena.errors import FileError
from arena.results.record import Split
from arena.task.corpus import case_checks
from arena.task.corpus.task_folder import load_task
from arena.task.definition import LARGE, OutputComparison, TaskType, TensorSpec, arguments
from tests.task.corpus.folders import HELDOUT, SEEN, TASK, write_task

TEXTS = {"task": TASK, "seen": SEEN, "heldout": HELDOUT}


def refused(root: Path, stem: str, old: str, new: str) -> FileError:
    """Load the folder with one thing changed in one file, and return what the loader says."""
    assert TEXTS[stem].count(old) >= 1
    folder = write_task(root, **{stem: TEXTS[stem].replace(old, new, 1)})
    with pytest.raises(FileError) as caught:
        load_task(folder)
    return caught.value


def test_the_folder_loads(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path))
    assert (task.id, task.task_type, task.suite) == (
        "triton2triton/suite/scale",
        TaskType.TRITON2TRITON,
        "suite",
    )
    assert [case.id for case in task.seen] == [f"seen-{n:02d}" for n in range(1, 6)]
    assert task.seen[3].values["alpha"] == 0.01
    assert task.seen[4].omit == {"bias"}
    assert (task.heldout[3].split, task.heldout[3].kind, task.heldout[3].note) == (Split.HELDOUT, "scale_up", "large")
    assert "note" not in task.heldout[3].values
    assert (task.axes[2].values, task.axes[2].low, task.axes[2].high) == ((64, 128), 64, 128)
    bias = task.inputs[1]
    assert isinstance(bias, TensorSpec) and bias.optional and bias.fill is not None
    assert {name: str(text) for name, text in bias.fill.arguments.items()}.keys() == {"low", "high"}


def test_a_case_may_draw_an_input_in_its_own_way(tmp_path: Path) -> None:
    line = "- {kind: values, M: 3, N: 24, D: 64, dtype: float32, fills: {x: {sparse: 1 / N}}}\n"
    task = load_task(write_task(tmp_path, heldout=HELDOUT + line))
    plain, other = task.heldout[1], task.heldout[5]
    assert task.identity(plain) != task.identity(other), "the same sizes with other values are another case"
    drawn = [arguments(task, case).inputs[0].spec.fill for case in (plain, other)]
    assert [fill.kind for fill in drawn if fill is not None] == ["normal", "sparse"]
    assert other.label == "M=3 N=24 D=64 float32 x sparse 1 / N" and "fills" not in other.values
    fills = [spec.fill for spec in task.inputs if isinstance(spec, TensorSpec)]
    assert fills[0] is not None and fills[0].kind == "normal", "the definition stays as it is"


def test_a_family_is_the_tasks_own_name_unless_it_has_another(tmp_path: Path) -> None:
    assert load_task(write_task(tmp_path / "own")).family == "scale"
    other = TASK.replace("entry: scale", "entry: scale\nfamily: elementwise")
    assert load_task(write_task(tmp_path / "other", task=other)).family == "elementwise"
    with pytest.raises(FileError, match="`family`: 'a family' does not match"):
        load_task(write_task(tmp_path / "bad", task=TASK.replace("entry: scale", "entry: scale\nfamily: a family")))


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ("summary:", "sumary:", 2, "sumary", "unknown key; expected one of: arithmetic, axes, constraints"),
        ("fill: normal", "fil: normal", 13, "inputs.x.fil", "expected one of: compare, constant, doc, domain, dtype"),
        ("fill: normal", "fill: gauss", 13, "inputs.x.fill", "'gauss' is not one of normal, permutation"),
        ("fill: normal", "fill: gauss", 13, "inputs.x.fill", "nor a mapping such as {uniform: [0, 1]}"),
        ("[N], dtype: float32", "[N], dtype: float23", 14, "inputs.bias.dtype", "not one of float64, float32, float16"),
        ("[N], dtype: float32", "[N], dtype: float23", 14, "inputs.bias.dtype", "nor $NAME of `dtypes`"),
        ("fill: normal", "fill: {offsets: {least: 1}}", 13, "inputs.x.fill.offsets", "'total' is missing"),
        ("fill: normal", "fill: {normal: 3}", 13, "inputs.x.fill.normal", "not of type 'array'"),
        ("value: 0.5", "valu: 0.5", 15, "inputs.alpha.valu", "expected one of: doc, domain, scalar, value"),
        ("value: 0.5", "value: x", 15, "inputs.alpha.value", "not of type 'number', 'boolean'"),
        ("value: 0.5", "value: true", 15, "inputs.alpha.value", "True is not a float32"),
        ("value: false", "value: 0", 16, "inputs.flag.value", "0 is not a bool"),
        ("scalar: bool", "scalar: int64", 16, "inputs.flag.value", "False is not a int64"),
        ("entry: scale", "entry: 3", 3, "entry", "3 is not of type 'string'"),
        ("work: {flops: 2 * M * N}", "work: {}", 19, "work", "'flops' is missing"),
        ("name: scale", "name: scales", 1, "name", "must be the folder's name, scale"),
        ("M: {doc: rows, domain: [1, 4096]}", "M: {doc: rows}", 5, "axes.M", "exactly one of domain, values"),
        ("[1, 4096]", "[4096, 1]", 5, "axes.M.domain", "is empty: 4096 is above 1"),
        ("[1, 4096]", "[1, 4096.0]", 5, "axes.M.domain.1", "4096.0 is not of type 'integer'"),
        ("[M, N], dtype: $dtype, fill", "[M, K], dtype: $dtype, fill", 13, "inputs.x.shape.1", "`K` is not an axis"),
        (
            "{flops: 2 * M * N}",
            "2 * M * N",
            19,
            "work",
            "'2 * M * N' is not a mapping; expected keys: bytes, flops, format",
        ),
        ("2 * M * N", "2 * M / (N - 8)", 19, "work.flops", "division by zero for seen-01; expected the floating-point"),
        (
            "2 * M * N",
            "M - N",
            19,
            "work.flops",
            "`M - N` is -7 for seen-01; expected the floating-point operations of",
        ),
        ("2 * M * N}", "2, bytes: 1 / (M - 1)}", 19, "work.bytes", "for seen-01; expected the bytes moved of one call"),
        ("2 * M * N", "2 * M * K", 19, "work.flops", "`K` is not an axis"),
        ("M <= 8 * N", "M <= 8 * K", 9, "constraints.0", "`K` is not an axis"),
        ("M <= 8 * N", "M.real <= N", 9, "constraints.0", "Attribute is not arithmetic"),
        ("dtype: $dtype, fill", "dtype: $dtyp, fill", 13, "inputs.x.dtype", "$dtyp is not declared under `dtypes`"),
        ("dtype: $dtype}", "dtype: $dtype, strides: [1]}", 18, "outputs.y.strides", "1 strides for 2 dimensions"),
        ("fill: normal}", "fill: normal, compare: close}", 13, "inputs.x.compare", "only a mutable input"),
        ("dtype: $dtype}", "dtype: $dtype, compare: near}", 18, "outputs.y.compare", "'near' is not one of close"),
        ("dtype: $dtype}", "dtype: $dtype, compare: quantized}", 18, "outputs.y.compare", "no code steps"),
        ("2 * M * N}", "2 * M * N, format: $other}", 19, "work.format", "$other is not declared"),
        ("dtype: [float32, float16]", "alpha: [float32]", 11, "dtypes.alpha", "something else already"),
        ("M: {doc", "x: {doc", 5, "axes.x", "something else already"),
        ("M: {doc", "note: {doc", 5, "axes.note", "something else already"),
        ("y: {shape", "x: {shape", 18, "outputs.x", "something else already"),
        ("fill: normal", "fill: {addresses: {of: z, row_bytes: 4}}", 13, "inputs.x.fill", "`z` is not a tensor"),
        ("\n  y: {shape: [M, N], dtype: $dtype}", " {}", 17, "outputs", "nothing to check"),
        ("entry: scale", "entry: scale\nentry: scale", 4, "entry", "key given twice, first on line 3"),
    ],
)
def test_faults_of_task_yaml(tmp_path: Path, old: str, new: str, line: int, key: str, says: str) -> None:
    problem = refused(tmp_path, "task", old, new)
    assert problem.path.name == "task.yaml"
    assert (problem.line, problem.key) == (line, key)
    assert says in problem.problem


@pytest.mark.parametrize(
    ("stem", "old", "new", "line", "key", "says"),
    [
        ("seen", "M: 2,", "M: 2.5,", 2, "seen-02.M", "2.5 is not a whole number"),
        ("seen", "M: 2,", "M: true,", 2, "seen-02.M", "True is not a whole number"),
        ("seen", "M: 2,", "M: 5000,", 2, "seen-02.M", "5000 is outside the domain (1 … 4096)"),
        ("seen", "N: 16,", "N: 17,", 2, "seen-02.N", "17 is outside the domain (8 … 4096, a multiple of 8)"),
        ("seen", "D: 64,", "D: 96,", 1, "seen-01.D", "96 is outside the domain (one of 64, 128)"),
        ("seen", "M: 2,", "", 2, "seen-02", "`M` is missing"),
        (
            "seen",
            "M: 2,",
            "M: 2, K: 3,",
            2,
            "seen-02.K",
            "unknown key; expected one of: M, N, D, dtype, alpha, flag, calls, fills, gpu_share",
        ),
        (
            "seen",
            "dtype: float16}",
            "dtype: bfloat16}",
            3,
            "seen-03.dtype",
            "'bfloat16' is not one of float32, float16",
        ),
        ("seen", "alpha: 1e-2", "alpha: no", 4, "seen-04.alpha", "'no' is not a float32"),
        ("seen", "alpha: 1e-2", "flag: no", 4, "seen-04.flag", "'no' is not a bool"),
        ("seen", "M: 2,", "M: 129,", 2, "seen-02", "breaks the constraint `M <= 8 * N`"),
        ("seen", "M: 2,", "M: 2, calls: 3,", 2, "seen-02.calls", "only a case with `timed: true` has it"),
        ("seen", "M: 2,", "M: 2, gpu_share: 3,", 2, "seen-02.gpu_share", "only a case with `timed: true` has it"),
        ("seen", "alpha: 1e-2", "gpu_share: 101", 4, "seen-04.gpu_share", "101 is greater than the maximum of 100"),
        ("seen", "alpha: 1e-2", "calls: 0", 4, "seen-04.calls", "0 is less than the minimum of 1"),
        ("seen", "omit: [bias]", "omit: [x]", 5, "seen-05.omit", "x is not an optional input"),
        ("seen", "omit: [bias]", "omit: bias", 5, "seen-05.omit", "not of type 'array'"),
        ("heldout", "M: 3,", "fills: {y: normal}, M: 3,", 2, "heldout-02.fills.y", "expected one of: x, bias"),
        (
            "heldout",
            "M: 3,",
            "omit: [bias], fills: {bias: normal}, M: 3,",
            2,
            "heldout-02.fills.bias",
            "is no input tensor of this case; expected one of: x",
        ),
        ("heldout", "M: 3,", "fills: {x: custom}, M: 3,", 2, "heldout-02.fills.x", "a case cannot choose custom"),
        ("heldout", "M: 3,", "fills: {x: odd}, M: 3,", 2, "heldout-02.fills.x", "'odd' is not one of normal"),
        ("heldout", "M: 3,", "fills: {x: {normal: [0, Z]}}, M: 3,", 2, "heldout-02.fills.x", "`Z` is not an axis"),
        ("seen", "- {M: 1, N: 8, D: 64, dtype: float32}\n", "", 1, None, "4 items given, at least 5 expected"),
        ("heldout", "kind: edge, ", "", 1, "heldout-01", "`kind` is missing"),
        ("heldout", "kind: edge", "kind: odd", 1, "heldout-01.kind", "'odd' is not one of edge, scale_up"),
        ("heldout", "M: 1, N: 8, D: 128", "M: 1, N: 8, D: 64", 1, "heldout-01", "equals seen-01"),
        ("heldout", "D: 128", "D: 64, alpha: 0.5", 1, "heldout-01", "equals seen-01"),
        ("heldout", "M: 3, N: 24", "M: 4, N: 32", 3, "heldout-03", "equals heldout-02"),
        ("seen", "M: 2, N: 16", "M: 1, N: 8", 2, "seen-02", "equals seen-01"),
    ],
)
def test_faults_of_cases(tmp_path: Path, stem: str, old: str, new: str, line: int, key: str | None, says: str) -> None:
    problem = refused(tmp_path, stem, old, new)
    assert problem.path.name == f"{stem}.yaml"
    assert (problem.line, problem.key) == (line, key)
    assert says in problem.problem


REGIMES = "alpha: 1e-2, timed: true, regimes: {large: {fills: {x: {normal: [0, 90]}}}, flagged: {flag: true}}"


def test_a_regime_is_a_case_of_the_same_sizes_with_other_values(tmp_path: Path) -> None:
    text = SEEN.replace("alpha: 1e-2, timed: true", f"{REGIMES}, calls: 7")
    task = load_task(write_task(tmp_path, seen=text))
    usual, large, flagged, last = task.seen[3:]
    assert [one.id for one in (usual, large, flagged, last)] == [
        "seen-04",
        "seen-04.large",
        "seen-04.flagged",
        "seen-05",
    ]
    assert large.label == f"{usual.label} x {large.fills['x'].label}" and large.values == usual.values
    assert dict(flagged.values) == {**usual.values, "flag": True} and not flagged.fills
    assert [one.regime for one in (usual, large, flagged)] == ["", "large", "flagged"]
    assert [one.calls for one in task.seen[3:]] == [7, 0, 0, 0] and large.timed and flagged.timed


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("{flag: true}", "{flag: false}", "seen-04.flagged", "equals seen-04"),
        ("{flag: true}", "{M: 2}", "seen-04.regimes.flagged", "changes the sizes or the dtype of `x`"),
        ("{flag: true}", "{flop: 1}", "seen-04.regimes.flagged.flop", "unknown key"),
        ("{flag: true}", "{timed: true}", "seen-04.regimes.flagged.timed", "is of the whole case; a regime has"),
        ("{flag: true}", "{}", "seen-04.regimes.flagged", "should be non-empty"),
        ("{x: {", "{y: {", "seen-04.regimes.large.fills.y", "is no input tensor of this case"),
        ("flagged:", "Flagged:", "seen-04.regimes", "'Flagged' does not match"),
        ("timed: true, ", "", "seen-04.regimes.large", "only a case with `timed: true` has regimes"),
    ],
)
def test_faults_of_regimes(tmp_path: Path, old: str, new: str, key: str, says: str) -> None:
    assert old in REGIMES
    with pytest.raises(FileError) as caught:
        text = SEEN.replace("alpha: 1e-2, timed: true", REGIMES.replace(old, new))
        load_task(write_task(tmp_path, seen=text))
    assert (caught.value.path.name, caught.value.line) == ("seen.yaml", 4)
    assert says in caught.value.problem and caught.value.key == key


def test_recorded_traffic_of_a_task_has_one_unit(tmp_path: Path) -> None:
    seen = SEEN.replace("timed: true", "timed: true, gpu_share: 4.5")
    shares = load_task(write_task(tmp_path / "one", seen=seen))
    assert [case.gpu_share for case in shares.seen] == [0, 0, 0, 4.5, 4.5]
    with pytest.raises(FileError, match="has `gpu_share`") as caught:
        load_task(write_task(tmp_path, seen=seen, heldout=HELDOUT.replace("timed: true", "timed: true, calls: 7")))
    assert (caught.value.path.name, caught.value.line, caught.value.key) == ("heldout.yaml", 4, "heldout-04.calls")


def test_a_shape_without_a_value_names_the_case(tmp_path: Path) -> None:
    problem = refused(tmp_path, "task", "y: {shape: [M, N]", "y: {shape: [M / 2, N]")
    assert (problem.path.name, problem.line, problem.key) == ("seen.yaml", 1, "seen-01")
    assert "0.5 is not a whole number" in problem.problem


def test_a_negative_size_names_the_tensor_and_the_case(tmp_path: Path) -> None:
    problem = refused(tmp_path, "task", "y: {shape: [M, N]", "y: {shape: [M - 2, N]")
    assert (problem.path.name, problem.line, problem.key) == ("seen.yaml", 1, "seen-01")
    assert problem.problem == "y: `M - 2` in its shape is -1; sizes are 0 or more"


def test_a_case_that_no_machine_holds_is_refused_with_its_bytes(tmp_path: Path) -> None:
    text = TASK.replace("[1, 4096]", "[1, 4000000]").replace("[8, 4096]", "[8, 8000000]")
    large = SEEN.replace("M: 2, N: 16, D: 64, dtype: float32", "M: 3248, N: 4000000, D: 64, dtype: float32")
    with pytest.raises(FileError) as caught:
        load_task(write_task(tmp_path, task=text, seen=large))
    assert (caught.value.path.name, caught.value.line, caught.value.key) == ("seen.yaml", 2, "seen-02")
    total = 2 * 3248 * 4000000 * 4 + 4000000 * 4
    assert caught.value.problem.startswith(f"its tensors hold {total} bytes (104 GB), at most 17179869184 (16 GiB)")


@pytest.mark.parametrize("name", ["task.yaml", "seen.yaml", "heldout.yaml", "kernel.py", "reference.py"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_task(tmp_path)
    (folder / name).unlink()
    with pytest.raises(FileError) as caught:
        load_task(folder)
    assert caught.value.path.name == name


def test_a_translation_needs_no_kernel(tmp_path: Path) -> None:
    folder = write_task(tmp_path, "torch2hip/suite/scale")
    (folder / "kernel.py").unlink()
    assert load_task(folder).baseline_kernel is None


def test_a_folder_must_lie_under_a_task_type(tmp_path: Path) -> None:
    for folder in (write_task(tmp_path, "cuda2hip/suite/scale"), Path("/")):
        with pytest.raises(FileError, match="task type one of hip2hip, triton2triton, torch2hip"):
            load_task(folder)
    with pytest.raises(FileError, match="missing"):
        load_task(tmp_path / "hip2hip" / "suite" / "nothing")


def test_comparisons(tmp_path: Path) -> None:
    text = TASK.replace("dtype: $dtype}", "dtype: $dtype, compare: {close: {atol: 1e-3}}}")
    tolerance = load_task(write_task(tmp_path, task=text)).outputs[0].tolerance
    assert tolerance is not None
    assert (tolerance.comparison, tolerance.atol, tolerance.rtol) == (OutputComparison.CLOSE, 1e-3, None)


def test_other_heldout_cases_in_place_of_the_committed(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    fresh = tmp_path / "fresh.yaml"
    fresh.write_text(HELDOUT.replace("M: 3, N: 24", "M: 5, N: 24"), encoding="utf-8")
    ours, theirs = load_task(folder), load_task(folder, fresh)
    assert (ours.heldout[1].values["M"], theirs.heldout[1].values["M"]) == (3, 5)
    assert ours.content_hash != theirs.content_hash
    fresh.write_text(HELDOUT, encoding="utf-8")
    assert load_task(folder, fresh).content_hash == ours.content_hash
    fresh.write_text(HELDOUT.replace("kind: edge, ", ""), encoding="utf-8")
    with pytest.raises(FileError, match=r"fresh.yaml:1"):
        load_task(folder, fresh)
    with pytest.raises(FileError, match="missing"):
        load_task(folder, tmp_path / "nothing.yaml")


INDEPENDENT = TASK.replace("work:", "independent: M\nwork:")
LARGE_CASE = "- {kind: large, M: 40, N: 16, D: 64, dtype: float16}\n"


@pytest.mark.parametrize(("text", "independent"), [(INDEPENDENT, "M"), (TASK, "")])
def test_a_large_case_has_rows_that_are_independent_or_is_compared_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, independent: str
) -> None:
    monkeypatch.setattr(case_checks, "LARGE_ELEMENTS", 639)
    task = load_task(write_task(tmp_path, task=text, heldout=HELDOUT + LARGE_CASE))
    assert (task.independent, task.heldout[-1].kind) == (independent, LARGE)


def test_every_name_of_a_mutant_can_be_declared(tmp_path: Path) -> None:
    names = [f"{number}:2 {fault}{which}" for number, fault in enumerate(Fault) for which in ("", " 2")]
    declared = "".join(f"  '{name}': it computes the same\n" for name in names)
    task = load_task(write_task(tmp_path, task=f"{TASK}equivalent_mutants:\n{declared}"))
    assert list(task.equivalent_mutants) == names


@pytest.mark.parametrize(
    ("task", "case", "says"),
    [
        (INDEPENDENT, LARGE_CASE.replace("M: 40", "M: 39"), "spans 624 elements; expected more than 639"),
        (INDEPENDENT, LARGE_CASE.replace("float16", "float16, timed: true"), "a large case is not timed"),
        (INDEPENDENT.replace("t: M", "t: K"), "", "`K` is not an axis"),
        (INDEPENDENT.replace("t: M", "t: D"), "", "the result y has no dimension `D`"),
        (INDEPENDENT.replace("[N], dtype", "[N * M], dtype"), "", "bias must have `M` as one dimension at most"),
    ],
)
def test_faults_of_independent_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, case: str, says: str
) -> None:
    monkeypatch.setattr(case_checks, "LARGE_ELEMENTS", 639)
    with pytest.raises(FileError) as caught:
        load_task(write_task(tmp_path, task=task, heldout=HELDOUT + case))
    assert says in caught.value.problem


@pytest.mark.parametrize(
    ("fill", "says"),
    [
        ("{uniform: [-1.0e+30, 1]}", "no sensible value"),
        ("{constant: M // 0}", "M // 0"),
        ("{uniform: [0, 7.0e+4]}", "70000 is beyond 65504, float16's end"),
        ("{normal: [0, 7.0e+4]}", ""),
    ],
)
def test_numbers_of_a_fill_are_looked_at_before_a_case_is_drawn(tmp_path: Path, fill: str, says: str) -> None:
    case = f"- {{kind: values, M: 3, N: 24, D: 64, dtype: float16, fills: {{x: {fill}}}}}\n"
    folder = write_task(tmp_path, heldout=HELDOUT + case)
    if says:
        with pytest.raises(FileError, match=re.escape(says)):
            load_task(folder)
    else:
        assert load_task(folder).heldout[-1].fills


def test_a_seen_case_has_no_kind(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"seen\.yaml:2: `seen-02\.kind`: a seen case has no kind"):
        load_task(write_task(tmp_path, seen=SEEN.replace("{M: 2", "{kind: edge, M: 2")))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("arithmetics", "`exceptions.arithmetics`: is not a rule of `arena tasks check`; did you mean 'arithmetic'?"),
        ("margins", "did you mean 'margin'?"),
        ("reach of NN", "did you mean 'reach of N'?"),
        ("reach of AXIS", "is not a rule"),
        ("OUTPUT ignores INPUTS", "`OUTPUT` is not a result of this task"),
        ("z ignores x", "`z` is not a result of this task; did you mean 'y ignores x'?"),
        ("y ignores x, biass", "`biass` is not an input of this task; did you mean 'bias'?"),
    ],
)
def test_an_exception_names_a_rule(tmp_path: Path, name: str, says: str) -> None:
    text = f'{TASK}exceptions:\n  margin: the sum is long\n  "{name}": it has its reasons\n'
    with pytest.raises(FileError) as caught:
        load_task(write_task(tmp_path, task=text))
    assert says in str(caught.value) and f"task.yaml:{TASK.count(chr(10)) + 3}:" in str(caught.value)


@pytest.mark.parametrize("name", ["arithmetic", "reach of M", "scale_up case", "y ignores bias, alpha"])
def test_a_rule_may_have_an_exception(tmp_path: Path, name: str) -> None:
    text = f'{TASK}exceptions: {{"{name}": it has its reasons}}\n'
    assert name in load_task(write_task(tmp_path, task=text)).exceptions


@pytest.mark.parametrize(
    ("task", "key"),
    [
        (TASK.replace("work:", "precision: native\narithmetic: tf32\nwork:"), "arithmetic"),
        (TASK.replace("values: [64, 128]", "values: [64, 128], multiple_of: 64"), "axes.D.multiple_of"),
    ],
)
def test_a_key_that_nothing_would_heed_is_refused(tmp_path: Path, task: str, key: str) -> None:
    with pytest.raises(FileError) as caught:
        load_task(write_task(tmp_path, task=task))
    assert caught.value.key == key and "no" in caught.value.problem


def test_least_triton_is_refused_of_a_task_in_hip(tmp_path: Path) -> None:
    folder = write_task(tmp_path, "hip2hip/suite/scale", task=TASK.replace("work:", 'least_triton: "3.6"\nwork:'))
    with pytest.raises(FileError, match=r"least_triton.*has no effect on a task of the type hip2hip"):
        load_task(folder)


def test_a_kernel_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    (folder / "kernel.py").write_bytes(b"x = 1\ny = '\xff'\n")
    with pytest.raises(FileError, match=r"kernel\.py:2: not UTF-8"):
        load_task(folder)
