"""Check that a case holds what its task declares: sizes, dtypes, scalars, fills, memory and work."""

from __future__ import annotations

from collections.abc import Mapping

from arena.task.corpus.strict_yaml import Document
from arena.task.definition import (
    LARGE,
    LARGE_ELEMENTS,
    MOST_HELD_BYTES,
    Arguments,
    Axis,
    Case,
    Precision,
    ScalarSpec,
    Task,
    Tensor,
    TensorSpec,
    arguments,
)
from arena.task.expression import Expression, ExpressionError, Number
from arena.task.rules import exception_problem

_GREATEST_FLOAT16 = 65504.0


def check_declared(document: Document, task: Task) -> None:
    """Raise `FileError` for an exception that names no rule, or a key that has no effect on this task."""
    _check_exceptions(document, task)
    data = document.data
    if "arithmetic" in data and task.precision is not Precision.FLOAT64:
        said = f"has no effect with `precision: {task.precision}`: only references in float64 have a tolerance by it"
        raise document.error(["arithmetic"], said)
    if "least_triton" in data and not task.task_type.triton:
        raise document.error(["least_triton"], f"has no effect on a task of the type {task.task_type}")


def _check_exceptions(document: Document, task: Task) -> None:
    import difflib

    results = [spec.name for spec in task.tensors if spec.mutable or spec in task.outputs]
    inputs = [spec.name for spec in task.inputs]
    for name in task.exceptions:
        found = exception_problem(name, [axis.name for axis in task.axes], results, inputs)
        if found is not None:
            problem, known = found
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise document.error(["exceptions", name], f"{problem}{hint}")


def memory_problem(arguments: Arguments) -> str:
    """Return what is wrong with where the tensors of a case lie, or an empty string.

    Elements of a tensor have addresses of their own, but those that a stride of 0 repeats in an input. A view lies in
    the memory of its base, which has no gaps.
    """
    for tensor in (*arguments.inputs, *arguments.outputs):
        negative = [value for value in (*tensor.strides, tensor.offset) if value < 0]
        if negative:
            return f"a stride or the offset of {tensor.name} is {negative[0]}; expected 0 or more"
        written = tensor.spec.mutable or tensor in arguments.outputs
        if _overlaps(tensor, repeats=not written):
            return f"elements of {tensor.name} overlap: shape {list(tensor.shape)}, strides {list(tensor.strides)}"
        problem = _view_problem(tensor, arguments) if tensor.base else ""
        if problem:
            return f"{tensor.name} is no view of {tensor.base}, which {problem}"
    return ""


def _overlaps(tensor: Tensor, *, repeats: bool) -> bool:
    """Return whether two elements share an address, other than by a stride of 0 where it `repeats`."""
    reach = 0
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if size <= 1 or (repeats and stride == 0):
            continue
        if stride <= reach:
            return tensor.numel > 0
        reach += (size - 1) * stride
    return False


def _view_problem(tensor: Tensor, arguments: Arguments) -> str:
    base = arguments.tensors[tensor.base]
    if base is None:
        return "the case leaves out"
    if base.numel != base.span:
        return "has gaps"
    end = tensor.offset + tensor.span
    return f"has {base.span} elements; the view ends after {end}" if end > base.span else ""


CASE_KEYS = frozenset({"calls", "fills", "gpu_share", "kind", "note", "omit", "regimes", "timed"})


def known_names(task: Task) -> frozenset[str]:
    """Return the names that expressions of a task may have: axes, scalars and `<dtype variable>_bytes`."""
    scalars = {spec.name for spec in task.inputs if isinstance(spec, ScalarSpec)}
    return frozenset({axis.name for axis in task.axes} | scalars | {f"{name}_bytes" for name in task.dtypes})


class CaseProblem(Exception):
    """What a case has that its task does not declare. `key`: the part of the case, or nothing for all of it."""

    def __init__(self, key: tuple[str, ...], text: str) -> None:
        super().__init__(": ".join([*key[-1:], text]))
        self.key, self.text = key, text


def _check_large(case: Case, worked_out: Arguments) -> None:
    """A `large` case is not timed, and has so large a tensor."""
    most = max((tensor.offset + tensor.span for tensor in (*worked_out.inputs, *worked_out.outputs)), default=0)
    for holds, problem in (
        (not case.timed, "a large case is not timed"),
        (most > LARGE_ELEMENTS, f"its largest tensor spans {most} elements; expected more than {LARGE_ELEMENTS}"),
    ):
        if not holds:
            raise CaseProblem(("kind",), problem)


def check_case(document: Document, task: Task, case: Case) -> Mapping[str, Number]:
    """Return the sizes of a case that holds what its task declares."""
    within = ["regimes", case.regime] if case.regime else []
    try:
        return checked_case(task, case).names
    except CaseProblem as problem:
        raise document.error([case.position, *within, *problem.key], problem.text) from None


def checked_case(task: Task, case: Case) -> Arguments:
    """Return a case with every size worked out; raises `CaseProblem` unless it holds what its task declares."""
    _check_values(task, case)
    _check_fills(task, case)
    _check_recorded(task, case)
    try:
        worked_out = arguments(task, case)
        for constraint in task.constraints:
            if not constraint.value(worked_out.names):
                raise CaseProblem((), f"breaks the constraint `{constraint.text}`")
        _check_numbers(worked_out)
        problem = memory_problem(worked_out)
        if problem:
            raise CaseProblem((), problem)
        held = worked_out.held_bytes
        if held > MOST_HELD_BYTES:
            most = f"at most {MOST_HELD_BYTES} (16 GiB) are allowed"
            raise CaseProblem((), f"its tensors hold {held} bytes ({held / 1e9:.3g} GB), {most}")
    except ExpressionError as problem:
        raise CaseProblem((), str(problem)) from None
    if case.kind == LARGE:
        _check_large(case, worked_out)
    if case.regime:
        _check_regime(task, worked_out)
    return worked_out


def _check_values(task: Task, case: Case) -> None:
    axes = {axis.name: axis for axis in task.axes}
    scalars = {spec.name: spec for spec in task.inputs if isinstance(spec, ScalarSpec)}
    optional = {spec.name for spec in task.tensors if spec.optional}
    expected = ", ".join([*axes, *task.dtypes, *scalars, *sorted(CASE_KEYS)])
    for name, value in case.values.items():
        problem = _value_problem(name, value, axes, task.dtypes, scalars, expected)
        if problem:
            raise CaseProblem((name,), problem)
    for name in [*axes, *task.dtypes]:
        if name not in case.values:
            raise CaseProblem((), f"`{name}` is missing")
    for name in sorted(case.omit - optional):
        raise CaseProblem(("omit",), f"{name} is not an optional input")


def _check_regime(task: Task, worked_out: Arguments) -> None:
    """Raise `CaseProblem` unless a regime has the sizes of its case, which is timed."""
    case = worked_out.case
    if not case.timed:
        raise CaseProblem((), "only a case with `timed: true` has regimes")
    same = (one for one in task.cases if (one.split, one.position, one.regime) == (case.split, case.position, ""))
    usual = arguments(task, next(same))
    for name, tensor in worked_out.tensors.items():
        if _layout(tensor) != _layout(usual.tensors[name]):
            raise CaseProblem((), f"changes the sizes or the dtype of `{name}`; expected other values alone")


def _layout(tensor: Tensor | None) -> object:
    return tensor and (tensor.shape, tensor.strides, tensor.dtype, tensor.offset)


def _check_recorded(task: Task, case: Case) -> None:
    """Raise `CaseProblem` unless a case of recorded traffic is timed, and all of a task are in one unit."""
    for key, given in (("calls", case.calls), ("gpu_share", case.gpu_share)):
        if given and not case.timed:
            raise CaseProblem((key,), "only a case with `timed: true` has it")
    if case.calls and any(other.gpu_share for other in task.cases):
        raise CaseProblem(("calls",), "another case of the task has `gpu_share`; expected one of the two in all cases")


def _check_fills(task: Task, case: Case) -> None:
    """What a case draws in another way must be an input that it passes, and be worked out from its own sizes."""
    specs = {spec.name: spec for spec in task.inputs if isinstance(spec, TensorSpec) and spec.name not in case.omit}
    names = known_names(task)
    for name, fill in case.fills.items():
        key = ("fills", name)
        if name not in specs:
            raise CaseProblem(key, f"is no input tensor of this case; expected one of: {', '.join(specs)}")
        declared = specs[name].fill
        if fill.kind in ("addresses", "custom"):
            raise CaseProblem(key, f"a case cannot choose {fill.kind}, only the definition can")
        if declared is not None and declared.kind == "addresses":
            raise CaseProblem(key, "addresses cannot be drawn in another way")
        for text in fill.arguments.values():
            for unknown in sorted(text.names - names if isinstance(text, Expression) else ()):
                raise CaseProblem(key, f"`{unknown}` is not an axis, a scalar or `<dtype>_bytes`")


def _check_numbers(worked_out: Arguments) -> None:
    """Raise `CaseProblem` where what a fill is told has no value in this case, or float16 cannot hold it."""
    for tensor in worked_out.inputs:
        fill = tensor.spec.fill
        told = fill.arguments.items() if fill is not None else ()
        numbers = {name: text.value(worked_out.names) for name, text in told if isinstance(text, Expression)}
        if fill is not None and fill.kind in ("uniform", "constant") and tensor.dtype == "float16":
            for number in numbers.values():
                if abs(number) > _GREATEST_FLOAT16:
                    raise CaseProblem((tensor.spec.name,), f"{number:g} is beyond {_GREATEST_FLOAT16:g}, float16's end")


def check_work(document: Document, task: Task, case: Case, names: Mapping[str, Number]) -> None:
    """The declared work must be a number for every case; errors are in the definition, not in the case."""
    for key, expression, meaning in (
        ("flops", task.work.flops, "floating-point operations"),
        ("bytes", task.work.bytes, "bytes moved"),
    ):
        try:
            value = 0 if expression is None else expression.value(names)
            problem = "" if value >= 0 else f"`{expression.text if expression else ''}` is {value}"
        except ExpressionError as failed:
            problem = str(failed)
        if problem:
            raise document.error(
                ["work", key], f"{problem} for {case.id}; expected the {meaning} of one call, 0 or more"
            )


def _value_problem(
    name: str,
    value: object,
    axes: Mapping[str, Axis],
    dtypes: Mapping[str, tuple[str, ...]],
    scalars: Mapping[str, ScalarSpec],
    expected: str,
) -> str:
    if name in axes:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"{value!r} is not a whole number"
        return "" if axes[name].admits(value) else f"{value} is outside the domain ({axes[name].domain_text})"
    if name in dtypes:
        return "" if value in dtypes[name] else f"{value!r} is not one of {', '.join(dtypes[name])}"
    if name in scalars:
        dtype = scalars[name].dtype
        if not is_scalar(value, dtype):
            return f"{value!r} is not a {dtype}"
        assert isinstance(value, int | float)
        low, high = scalars[name].domain
        return "" if low <= value <= high else f"{value} is outside [{low:g}, {high:g}], its domain"
    return f"unknown key; expected one of: {expected}"


def is_scalar(value: object, dtype: str) -> bool:
    """Return whether a value of YAML is a scalar of this dtype."""
    is_bool = isinstance(value, bool)
    is_number = not is_bool and isinstance(value, (int, float) if dtype == "float32" else int)
    return is_bool if dtype == "bool" else is_number
