"""Declarations of a task in plain words: how an output is compared, what an input holds, which sizes there are."""

from __future__ import annotations

from math import inf

from arena.task.definition import (
    Arithmetic,
    Fill,
    InputSpec,
    OutputComparison,
    Precision,
    ScalarSpec,
    Task,
    TensorSpec,
    arguments,
)
from arena.task.expression import Expression
from arena.task.fp8 import FP8
from arena.task.numerics.comparison import allowed_regret, default_tolerance
from arena.task.numerics.dtypes import bounds

_REFERENCE = {
    Precision.FLOAT64: "on the inputs widened to float64",
    Precision.FLOAT32: "on the inputs widened to float32",
    Precision.NATIVE: "on the inputs in their own dtypes",
}
_FILLS = {
    "normal": "normal, mean {mean}, standard deviation {std}; mostly with outliers, tiles, offsets or scales",
    "normal_even": "normal, mean {mean}, standard deviation {std}",
    "normal_rows": "normal, each row with its own standard deviation, log-uniform in [{low}, {high}]",
    "sparse": "normal with probability {value}, else 0",
    "equal_rows": "one normal number a row, mean {mean}, standard deviation {std}, in all of its places",
    "peaks": "normal, mean 0, standard deviation {std}, and {mean} more at one random place of each row",
    "uniform": "uniform in [{low}, {high})",
    "integers": "random integers in [{low}, {high})",
    "bernoulli": "true with probability {value}",
    "constant": "all {value}",
    "permutation": "a random permutation of 0 … n − 1 along the last dimension",
    "one_hot": "zero but for a single 1 at a random place along the last dimension",
    "offsets": "ascending offsets from 0 to {total}, each part at least {least} long",
    "page_table": "distinct integers below {pages}, in random order",
    "distinct": "distinct integers below {below}, in random order",
    "addresses": "device addresses of the rows of {of} ({row_bytes} bytes each), in random order",
    "custom": "drawn by `make_inputs` in reference.py",
}
_DEFAULTS = {"mean": "0", "std": "1", "least": "0"}


def uses_fp8(task: Task) -> bool:
    """Return whether the dtype `fp8` is among the task's."""
    return FP8 in {*(name for choices in task.dtypes.values() for name in choices), *(s.dtype for s in task.tensors)}


def reference_words(task: Task) -> str:
    """In which arithmetic the reference runs."""
    return _REFERENCE[task.precision]


def dtype_words(spec: TensorSpec) -> str:
    """`float32`, or the variable that a case chooses."""
    return spec.dtype.removeprefix("$")


def shape_words(sizes: tuple[Expression, ...]) -> str:
    """`[M, N]`."""
    return "[" + ", ".join(size.text for size in sizes) + "]"


def layout_words(spec: TensorSpec) -> str:
    """Return strides in elements, and how many elements of its memory lie before the first one."""
    strides = shape_words(spec.strides) if spec.strides else "dense"
    if spec.offset is None:
        return strides
    return f"{strides}, after {spec.offset.text} elements of its memory"


def view_words(spec: TensorSpec) -> str:
    """Say whose memory a tensor lies in, if it has none of its own in some case."""
    if spec.view_of is None:
        return ""
    when = "" if spec.view_of.when is None else f" where {spec.view_of.when.text} is not 0"
    return f"a view of the memory of {spec.view_of.input}{when}"


def fill_words(fill: Fill | None) -> str:
    """Return what the values of an input are drawn from."""
    if fill is None:
        return ""
    arguments = {n: v.text if isinstance(v, Expression) else v for n, v in fill.arguments.items()}
    return _FILLS[fill.kind].format(**{**_DEFAULTS, **arguments})


def range_words(spec: InputSpec) -> str:
    """Return the numbers that an input may hold; nothing where it may hold any."""
    low, high = spec.domain
    if low == -inf:
        return "" if high == inf else f"at most {high:g}"
    return f"at least {low:g}" if high == inf else f"from {low:g} to {high:g}"


def scalar_words(task: Task, spec: ScalarSpec) -> str:
    """The value of a scalar, and which others the seen cases set."""
    values = sorted({case.values.get(spec.name, spec.value) for case in task.seen}, key=float)
    if values == [spec.value]:
        return f"{spec.value} unless a case sets another; it is {spec.value} in all seen cases"
    return f"{spec.value} unless a case sets another; seen cases have {', '.join(map(str, values))}"


def arithmetic_words(task: Task) -> str:
    """Say what may be rounded on the way to an output; nothing where the reference is not float64."""
    if task.precision is not Precision.FLOAT64:
        return ""
    if task.arithmetic is Arithmetic.OPERATORS:
        rounds = (
            "the result of every operator in reference.py may be rounded to a 16-bit dtype of inputs, as PyTorch does"
        )
        return f"{rounds}. Sums inside an operator are float32"
    formats = sorted({arguments(task, case).operand_format for case in task.seen})
    words = f"operands of matrix products may be rounded to {' or '.join(formats)}, as the inputs are"
    if formats == ["float32"]:
        words = "operands of matrix products are float32 (TF32 is not enough)"
    elif "float32" in formats:
        words = words.replace(" or float32", "").replace("float32 or ", "") + "; float32 ones stay float32, not TF32"
    return f"{words}. Sums and all other operations are float32, and an output is rounded once"


def comparison_words(task: Task, spec: TensorSpec) -> str:
    """Return how an output, or a mutable input after the call, is compared with the reference."""
    dtypes = task.dtypes[spec.dtype[1:]] if spec.dtype.startswith("$") else (spec.dtype,)
    by_words: dict[str, list[str]] = {}
    for dtype in dtypes:
        by_words.setdefault(_comparison(spec, task.format(dtype)), []).append(dtype)
    if len(by_words) == 1:
        return next(iter(by_words))
    return "; ".join(f"for {', '.join(names)}: {words}" for words, names in by_words.items())


def _comparison(spec: TensorSpec, dtype: str) -> str:
    tolerance = spec.tolerance or default_tolerance(dtype)
    if tolerance.comparison is OutputComparison.EXACT:
        return "every element must equal the reference's"
    if tolerance.comparison is OutputComparison.QUANTIZED:
        most = "1 % of the elements (of fewer than 700 in six, but no more than one in sixteen)"
        return f"at most one code step off, in at most {most}; all others must equal the reference's"
    if tolerance.comparison is OutputComparison.DECISION:
        return f"any choice whose regret, by `regret` in reference.py, is at most {allowed_regret(tolerance):g}"
    atol, rtol = bounds(tolerance, dtype)
    if tolerance.atol is None:
        return f"|error| ≤ E · RMS + (E + {rtol - atol:.2g}) · |expected|, with E of at least {atol:.2g}"
    return f"|error| ≤ {atol:g} · RMS + {rtol:g} · |expected|"


def init_words(item: Expression | tuple[Expression, ...]) -> str:
    """Return an argument of a module's constructor: an expression, or a list of them."""
    return f"[{', '.join(one.text for one in item)}]" if isinstance(item, tuple) else item.text
