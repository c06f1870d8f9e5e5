"""Every reference computes what its task is called: each agrees with a formula that was written without it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from arena.checks.tasks.soundness import Draw
from arena.judge.selection import emulation_work
from arena.results.record import Split
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Case, OutputComparison, Precision, ScalarSpec, Task, TensorSpec, arguments
from arena.task.numerics.reference import Reference, call_by_name, expected_names, known_values
from tests.tasks import formulas
from tests.tasks.formulas import Array, Results

Formula = Callable[..., Results]

MODULES = tuple(
    import_module(f"tests.tasks.{path.stem}") for path in sorted(Path(__file__).parent.glob("formulas*.py"))
)
NO_FORMULA: dict[str, str] = {}
"""Names of tasks that cannot have a formula, with the reason."""

CHEAP = 1e6
"""Declared work of a case; formulas are loops in Python."""
RELATIVE = 1e-6
NATIVE_ULPS = 4
"""Where a reference computes in the dtype of its inputs, it can come no closer than that dtype lets it."""
OF_RMS = 1e-9
"""Added to the relative bound, in units of the RMS: what float64 loses in sums whose terms cancel."""
CODES_OFF = 0.01
SEED = 20

DEFINITIONS = sorted(path.parent for path in TASKS.glob("*/*/*/reference.py"))
"""Folders of the tasks that share no other's definition; read by the test that needs one."""
every_definition = pytest.mark.parametrize("folder", DEFINITIONS, ids=lambda path: str(path.relative_to(TASKS)))


def operators() -> dict[str, Formula]:
    """Every formula by the name of its operator."""
    found: dict[str, Formula] = {}
    for module in MODULES:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                assert name not in found, f"two formulas are called {name}"
                found[name] = function
    return found


FORMULAS = operators()


def few_cases(task: Task) -> list[Case]:
    """The cheap seen cases, the cheapest held-out one, and the cheapest with each setting that those do not show."""
    work = {case.id: emulation_work(arguments(task, case)) for case in task.cases}
    ordered = sorted(task.cases, key=lambda case: work[case.id])
    cheap = [case for case in ordered if work[case.id] <= CHEAP] or ordered[:1]
    chosen = [case for case in cheap if case.split is Split.SEEN]
    chosen += [case for case in cheap if case.split is Split.HELDOUT][:1]
    for case in cheap:
        if setting(task, case) not in [setting(task, other) for other in chosen]:
            chosen.append(case)
    return chosen


def setting(task: Task, case: Case) -> frozenset[str]:
    """What a case omits, and the scalars that it sets to another value than the default."""
    scalars = [spec for spec in task.inputs if isinstance(spec, ScalarSpec)]
    return case.omit | {spec.name for spec in scalars if case.values.get(spec.name, spec.value) != spec.value}


def as_array(tensor: torch.Tensor) -> Array:
    """Floating tensors in float64, others as they are."""
    array: Array = (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    return array


def disagreement(task: Task, case: Case, formula: Formula) -> str:
    """How the reference's results differ from the formula's on one draw of the case's inputs; empty if they agree."""
    worked_out = arguments(task, case)
    draw = Draw.of(Reference(task.reference_path), worked_out, torch.Generator().manual_seed(SEED))
    found = draw.reference(worked_out, draw.inputs)
    inputs = {name: as_array(tensor) for name, tensor in draw.inputs.items()}
    wanted = call_by_name(formula, known_values(worked_out), inputs)
    names = expected_names(worked_out)
    if len(wanted) != len(names):
        return f"the formula gives {len(wanted)} results, the task declares {', '.join(names)}"
    for name, by_formula in zip(names, wanted, strict=True):
        allowed = relative_bound(task, found[name].dtype)
        problem = difference(as_array(found[name]), by_formula, comparison(task, name), allowed)
        if problem:
            return f"{name} of the reference is not what the formula gives: {problem}"
    return ""


def comparison(task: Task, name: str) -> OutputComparison:
    tolerance = next(spec.tolerance for spec in task.tensors if spec.name == name)
    return OutputComparison.CLOSE if tolerance is None else tolerance.comparison


def relative_bound(task: Task, dtype: torch.dtype) -> float:
    native = task.precision is Precision.NATIVE and dtype.is_floating_point
    return max(RELATIVE, NATIVE_ULPS * torch.finfo(dtype).eps) if native else RELATIVE


def difference(found: Array, wanted: Array, how: OutputComparison, relative: float = RELATIVE) -> str:
    """What is wrong with `found`; empty if nothing. NaN and Inf must be in the same places."""
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return "NaN or Inf in other places"
    error = np.abs(found[finite] - wanted[finite])
    if how is OutputComparison.QUANTIZED:
        off = np.count_nonzero(error) / max(error.size, 1)
        return f"{off:.1%} of the codes differ, by up to {error.max()}" if off > CODES_OFF or (error > 1).any() else ""
    if how is OutputComparison.EXACT:
        allowed = np.zeros_like(error)
    else:
        rms = np.sqrt((wanted[finite] ** 2).sum() / max(error.size, 1))
        allowed = relative * np.abs(wanted[finite]) + OF_RMS * rms
    return f"{np.count_nonzero(error > allowed)} differ, by up to {error.max():.3g}" if (error > allowed).any() else ""


@pytest.mark.parametrize("name", [folder.name for folder in DEFINITIONS])
def test_a_task_has_a_formula(name: str) -> None:
    advice = f"write tests/tasks/formulas.py: {name} from the summary in task.yaml, not from reference.py"
    assert name in FORMULAS or NO_FORMULA.get(name), f"{name} has no formula: {advice}"


def test_a_formula_has_a_task_and_an_exception_has_none() -> None:
    names = {folder.name for folder in DEFINITIONS}
    assert {name for name in (*FORMULAS, *NO_FORMULA) if name not in names} == set()
    assert set(FORMULAS) & set(NO_FORMULA) == set()


@pytest.mark.slow(but=["hip2hip"])
@every_definition
def test_a_reference_agrees_with_the_formula(folder: Path) -> None:
    task = load_task(folder)
    if task.name in NO_FORMULA:
        pytest.skip(NO_FORMULA[task.name])
    found = {f"{case.split} {case.label}": disagreement(task, case, FORMULAS[task.name]) for case in few_cases(task)}
    assert {case: what for case, what in found.items() if what} == {}


OF_FP8 = [path for path in DEFINITIONS if "fp8" in (path / "task.yaml").read_text(encoding="utf-8")]


@pytest.mark.slow(but=["silu_mul_quant_fp8"])
@pytest.mark.parametrize("folder", OF_FP8, ids=lambda path: str(path.relative_to(TASKS)))
def test_so_does_it_in_the_fp8_of_gfx942(folder: Path) -> None:
    task = load_task(folder).on("gfx942")
    found = {f"{case.split} {case.label}": disagreement(task, case, FORMULAS[task.name]) for case in few_cases(task)}
    assert {case: what for case, what in found.items() if what} == {}


@pytest.mark.slow(but=["hip2hip"])
@every_definition
def test_the_few_cases_show_every_flag_and_every_omission(folder: Path) -> None:
    task = load_task(folder)
    chosen = few_cases(task)
    for spec in task.inputs:
        if isinstance(spec, TensorSpec) and spec.optional:
            assert {spec.name in case.omit for case in chosen} == {True, False}, spec.name
        elif isinstance(spec, ScalarSpec) and spec.dtype == "bool":
            assert {case.values.get(spec.name, spec.value) for case in chosen} == {True, False}, spec.name


def relu(x: Array, approximate: bool) -> Results:
    return (np.where(x > 0, x, 0.0),)


def other_gelu(x: Array, approximate: bool) -> Results:
    return formulas.gelu(x, not approximate)


def biased_deviation(x: Array, gain: Array, bias: Array, eps: float) -> Results:
    """The usual layer normalization: variance over N, eps inside the root."""
    centred = x - x.mean(axis=1, keepdims=True)
    return (gain * centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps) + bias,)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("scaled_sigmoid", formulas.scaled_tanh),
        ("scaled_tanh", formulas.scaled_sigmoid),
        ("silu", formulas.softmax),
        ("gelu", relu),
        ("gelu", other_gelu),
        ("layer_normalization", biased_deviation),
    ],
)
def test_the_formula_of_another_operator_is_told_apart_in_every_case(name: str, wrong: Formula) -> None:
    task = load_task(next(folder for folder in DEFINITIONS if folder.name == name))
    for case in few_cases(task):
        assert disagreement(task, case, wrong).startswith("y of the reference is not"), case.label


RIGHT = np.arange(1.0, 201.0)
NAN = float("nan")


def changed(count: int, by: float) -> Array:
    """`RIGHT` with its first `count` elements changed."""
    return np.where(np.arange(RIGHT.size) < count, RIGHT + by, RIGHT)


@pytest.mark.parametrize(
    ("found", "how", "problem"),
    [
        (changed(200, 5e-7), OutputComparison.CLOSE, ""),
        (changed(1, 5e-6), OutputComparison.CLOSE, "1 differ, by up to 5e-06"),
        (changed(1, NAN), OutputComparison.CLOSE, "NaN or Inf in other places"),
        (RIGHT[:, np.newaxis], OutputComparison.CLOSE, "shape (200, 1), not (200,)"),
        (changed(1, 1e-12), OutputComparison.EXACT, "1 differ, by up to 1e-12"),
        (changed(2, 1), OutputComparison.QUANTIZED, ""),
        (changed(3, 1), OutputComparison.QUANTIZED, "1.5% of the codes differ, by up to 1.0"),
        (changed(1, -2), OutputComparison.QUANTIZED, "0.5% of the codes differ, by up to 2.0"),
    ],
)
def test_what_counts_as_a_difference(found: Array, how: OutputComparison, problem: str) -> None:
    assert difference(found, RIGHT, how) == problem


def test_nan_and_inf_in_the_same_places_agree() -> None:
    special = np.array([1.0, NAN, float("inf"), -float("inf")])
    assert difference(special, special.copy(), OutputComparison.CLOSE) == ""
    assert difference(special, special * [1, 1, -1, 1], OutputComparison.CLOSE) == "NaN or Inf in other places"
