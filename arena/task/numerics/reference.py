"""References: Python modules in task folders, called with the arguments whose names they ask for."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from arena.errors import FileError
from arena.task.definition import Arguments, Arithmetic, Precision, ScalarSpec, TensorSpec
from arena.task.fp8 import FP8
from arena.task.numerics.comparison import MOST_ARITHMETIC_ERROR, MOST_OPERATORS_ERROR, relative_error
from arena.task.numerics.dtypes import torch_dtype

if TYPE_CHECKING:
    import torch

    from arena.task.numerics.unstable_forms import UnstableForm, UnstableMode

FUNCTION = "reference"
INPUT_BUILDER = "make_inputs"
REGRET = "regret"
UNREAD = "unread"
FEW = 16
"""elements of an output that may all happen to have small errors, and beside which there is hardly any scale"""
_OTHER_WAYS = 4
_SEED = 1 << 20
"""between the seeds of two ways: more than a reference has operands, and within the 32 bits that the CPU heeds"""
_OPERATORS_SHARE = 0.5
"""rounding of every operator's result is the worst that a kernel may do: twice its error is enough"""


class Reference:
    """The reference of one task, loaded into this process. Only for processes that are trusted with it."""

    def __init__(self, path: Path) -> None:
        with _located(path):
            self._module = load_module(path, f"arena_reference_{path.parent.name}")
        self._function = _function(self._module, FUNCTION, path)
        self._path = path

    def __call__(self, arguments: Arguments, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Expected outputs and mutable inputs by name, from one set of inputs in their own dtypes.

        Raises `FileError` where the reference fails, or returns another shape than is declared.
        """
        precision = arguments.task.precision
        expected = self._results(arguments, {name: _widen(tensor, precision) for name, tensor in inputs.items()})
        self._check_shapes(arguments, expected)
        return expected

    def _results(self, arguments: Arguments, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        names = expected_names(arguments)
        with self._located(arguments):
            found = results(self._function, known_values(arguments), inputs, len(names))
        return dict(zip(names, found, strict=True))

    def arithmetic_errors(
        self, arguments: Arguments, inputs: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]
    ) -> dict[str, float]:
        """Measure how far each floating output is from `expected` in the allowed arithmetic, before it is rounded.

        Returns:
            By name the greatest error over scale + |expected| of any element that the output's dtype can hold, at
            most `MOST_ARITHMETIC_ERROR`. Where every result is rounded, half of it, at most half of
            `MOST_OPERATORS_ERROR`.
        """
        if arguments.task.precision is not Precision.FLOAT64:
            return {}
        everywhere = arguments.task.arithmetic is Arithmetic.OPERATORS
        share, most = (_OPERATORS_SHARE, MOST_OPERATORS_ERROR) if everywhere else (1.0, MOST_ARITHMETIC_ERROR)
        found, products = self._rounded(arguments, inputs, arguments.operand_format, everywhere=everywhere)
        several = products > 0 and not everywhere and arguments.operand_format != "float32"
        floating = [
            tensor
            for name, wanted in expected.items()
            if wanted.is_floating_point() and (tensor := arguments.tensors[name]) is not None
        ]
        few = {tensor.name for tensor in floating if several and tensor.numel <= FEW}
        others = self._otherwise(arguments, inputs) if few else []
        return {
            tensor.name: share
            * max(
                relative_error(way[tensor.name], expected[tensor.name], most, torch_dtype(tensor.dtype))
                for way in ([found, *others] if tensor.name in few else [found])
            )
            for tensor in floating
        }

    def in_arithmetic(
        self,
        arguments: Arguments,
        inputs: Mapping[str, torch.Tensor],
        number_format: str,
        *,
        everywhere: bool = False,
        dither: int | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return the results in float32, with operands of matrix products rounded; or, `everywhere`, all results.

        `dither`: a seed by which operands are first moved by up to half a unit, as if rounded in another kernel.
        """
        seed = None if dither is None else _SEED * dither
        return self._rounded(arguments, inputs, number_format, everywhere=everywhere, dither=seed)[0]

    def _otherwise(self, arguments: Arguments, inputs: Mapping[str, torch.Tensor]) -> list[dict[str, torch.Tensor]]:
        """Return the results with operands rounded as in other kernels, always in the same ways."""
        return [
            self.in_arithmetic(arguments, inputs, arguments.operand_format, dither=way)
            for way in range(1, _OTHER_WAYS + 1)
        ]

    def _rounded(
        self,
        arguments: Arguments,
        inputs: Mapping[str, torch.Tensor],
        number_format: str,
        *,
        everywhere: bool = False,
        dither: int | None = None,
    ) -> tuple[dict[str, torch.Tensor], int]:
        """Return the results of `in_arithmetic`, and how many matrix products there were. `dither`: their seed."""
        from arena.task.numerics.arithmetic import FLOAT8_SUMS, FLOAT32_SUMS, RoundedProducts, RoundedResults

        sums = FLOAT8_SUMS if any(tensor.dtype.startswith("float8") for tensor in arguments.inputs) else FLOAT32_SUMS
        products = RoundedProducts("float32" if everywhere else number_format, sums, dither)
        with products, RoundedResults(number_format) if everywhere else nullcontext():
            results = self._results(arguments, {name: _in_float32(tensor) for name, tensor in inputs.items()})
        return results, products.products

    def unstable_forms(self, arguments: Arguments, inputs: Mapping[str, torch.Tensor]) -> list[UnstableForm]:
        """Return the operations of one call that have an unstable form, in the order in which they first occur."""
        return list(self._in_mode(arguments, inputs, None)[1].found)

    def in_unstable_form(
        self, arguments: Arguments, inputs: Mapping[str, torch.Tensor], chosen: UnstableForm
    ) -> dict[str, torch.Tensor]:
        """Return the results with one operation in its unstable form, in float32; all others as they are."""
        return self._in_mode(arguments, inputs, chosen)[0]

    def _in_mode(
        self, arguments: Arguments, inputs: Mapping[str, torch.Tensor], chosen: UnstableForm | None
    ) -> tuple[dict[str, torch.Tensor], UnstableMode]:
        import torch

        from arena.task.numerics.unstable_forms import UnstableMode

        halves = [tensor.dtype for tensor in inputs.values() if tensor.dtype in (torch.float16, torch.bfloat16)]
        given = {name: _widen(tensor, arguments.task.precision) for name, tensor in inputs.items()}
        with UnstableMode(str(self._path), chosen, halves) as mode:
            return self._results(arguments, given), mode

    def make_inputs(self, arguments: Arguments, generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
        """`count` draws of the inputs whose fill is `custom`: each of shape (count, *shape)."""
        build = _function(self._module, INPUT_BUILDER, self._path)
        with self._located(arguments):
            made = build(known_values(arguments), generator, count)
            if not isinstance(made, dict):
                raise TypeError(
                    f"`{INPUT_BUILDER}` returned a {type(made).__name__}, expected a dict of tensors by name"
                )
        return made

    @property
    def has_unread(self) -> bool:
        """Return whether the task says which elements of its inputs no result depends on."""
        return hasattr(self._module, UNREAD)

    def unread(self, arguments: Arguments, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return by input which of its elements no result depends on; inputs are of shape (count, *shape).

        A mask has the first dimensions of its input, `count` among them, and holds for all that lies in the others.
        """
        function = _function(self._module, UNREAD, self._path)
        with self._located(arguments):
            given = call_by_name(function, known_values(arguments), inputs)
            if not isinstance(given, dict):
                raise TypeError(f"`{UNREAD}` returned a {type(given).__name__}, expected a dict of masks by name")
        return given

    def regret(
        self, arguments: Arguments, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """For `decision` outputs: how much worse, in float64, each choice is than the best."""
        function = _function(self._module, REGRET, self._path)
        widened = {name: _widen(tensor, arguments.task.precision) for name, tensor in inputs.items()}
        with self._located(arguments):
            given = call_by_name(function, known_values(arguments), {**widened, **outputs})
            if not isinstance(given, dict):
                raise TypeError(f"`{REGRET}` returned a {type(given).__name__}, expected a dict of tensors by name")
        return given

    def count_flops(self, arguments: Arguments, inputs: Mapping[str, torch.Tensor]) -> float:
        """Return the floating-point operations of one call (`arena.task.numerics.operations.count_flops`)."""
        from arena.task.numerics.operations import count_flops

        given = {name: _widen(tensor, arguments.task.precision) for name, tensor in inputs.items()}
        return count_flops(lambda: self._results(arguments, given))

    def validate(self, arguments: Arguments, inputs: Mapping[str, torch.Tensor]) -> None:
        """Call it once more to see what the judge, which works on copies and converts results, would not notice.

        Raises:
            FileError: it writes to an input that is not mutable, or a result is floating where an integer is declared
                or the other way round.
        """
        given = {name: _widen(tensor, arguments.task.precision) for name, tensor in inputs.items()}
        before = {name: tensor.clone() for name, tensor in given.items()}
        for name, value in self._results(arguments, given).items():
            tensor = arguments.tensors[name]
            if tensor is not None and value.is_floating_point() != torch_dtype(tensor.dtype).is_floating_point:
                raise self._error(arguments, f"`{name}` is returned as {value.dtype}, declared is {tensor.dtype}")
        mutable = {spec.name for spec in arguments.task.tensors if spec.mutable}
        for name in sorted(given.keys() - mutable):
            if not _same_bytes(given[name], before[name]):
                advice = f"compute on `{name}.clone()`, or declare the input `mutable: true`"
                raise self._error(
                    arguments, f"the reference writes to its input `{name}`, which is read-only: {advice}"
                )

    def _check_shapes(self, arguments: Arguments, expected: Mapping[str, torch.Tensor]) -> None:
        for name, value in expected.items():
            tensor = arguments.tensors[name]
            if tensor is not None and tuple(value.shape) != tensor.shape:
                raise self._error(arguments, f"`{name}` has shape {tuple(value.shape)}, declared is {tensor.shape}")

    def _error(self, arguments: Arguments, problem: str) -> FileError:
        return FileError(
            self._path, f"{_case(arguments)}{problem}", line=inspect.unwrap(self._function).__code__.co_firstlineno
        )

    def _located(self, arguments: Arguments) -> AbstractContextManager[None]:
        return _located(self._path, _case(arguments))


def _case(arguments: Arguments) -> str:
    return f"{arguments.case.id} ({arguments.case.label}): "


@contextmanager
def _located(path: Path, where: str = "") -> Iterator[None]:
    """Turn whatever a task's own code raises into a `FileError` that names its line."""
    try:
        yield
    except FileError:
        raise
    except SyntaxError as problem:
        raise FileError(path, f"{where}{problem.msg}", line=problem.lineno) from problem
    except (Exception, SystemExit) as problem:
        lines = [frame.lineno for frame in extract_tb(problem.__traceback__) if frame.filename == str(path)]
        raise FileError(path, f"{where}{type(problem).__name__}: {problem}", line=lines[-1] if lines else None) from (
            problem
        )


def load_module(path: Path, name: str, own_file: Path | None = None) -> ModuleType:
    """Run a Python file as a module called `name`, which other code can look up, as `dataclass` does.

    `own_file`: what the module takes for its file, if that is another.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileError(path, "is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if own_file is not None:
        module.__file__ = str(own_file)
    spec.loader.exec_module(module)
    return module


def known_values(arguments: Arguments) -> dict[str, Any]:
    """Axes, scalars and dtypes of a case by name, and the dtype `fp8`; None for inputs that it leaves out."""
    task = arguments.task
    values: dict[str, Any] = {FP8: torch_dtype(task.fp8), **arguments.names}
    values.update({name: torch_dtype(task.format(str(arguments.case.values[name]))) for name in task.dtypes})
    for spec in task.inputs:
        if isinstance(spec, ScalarSpec):
            values[spec.name] = arguments.scalar(spec)
        elif arguments.tensors[spec.name] is None:
            values[spec.name] = None
    return values


def expected_names(arguments: Arguments) -> list[str]:
    """What a reference returns, in order: the outputs, then the mutable inputs as they are after the call."""
    mutable = [spec.name for spec in arguments.task.inputs if isinstance(spec, TensorSpec) and spec.mutable]
    return [spec.name for spec in arguments.task.outputs] + mutable


def results(
    function: Callable[..., Any], values: Mapping[str, Any], inputs: Mapping[str, torch.Tensor], count: int
) -> tuple[torch.Tensor, ...]:
    """Call a reference by name and return its results as a tuple of `count` tensors."""
    import torch

    given = call_by_name(function, values, inputs)
    found = given if isinstance(given, tuple) else (given,)
    if len(found) != count:
        raise ValueError(f"the reference returned {len(found)} tensors, declared are {count}")
    for number, value in enumerate(found, start=1):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"the reference returned a {type(value).__name__} as result {number}, expected a tensor")
    return found


def call_by_name(function: Callable[..., Any], values: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    """Call `function` with exactly the parameters it names."""
    available = {**values, **inputs}
    wanted = inspect.signature(function).parameters
    missing = [name for name in wanted if name not in available]
    if missing:
        raise ValueError(f"the reference asks for {', '.join(missing)}, which the task does not declare")
    return function(**{name: available[name] for name in wanted})


def _function(module: ModuleType, name: str, path: Path) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        raise FileError(path, f"defines no function `{name}`: write one, with arguments named as the task's inputs")
    assert callable(function)
    return function  # type: ignore[no-any-return]


def _same_bytes(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors are alike to the bit, NaN included."""
    import torch

    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return torch.equal(*(one.contiguous().flatten().view(torch.uint8) for one in (first, second)))


def _in_float32(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.to(torch.float32, copy=True) if tensor.is_floating_point() else tensor.clone()


def _widen(tensor: torch.Tensor, precision: Precision) -> torch.Tensor:
    """A copy that the reference may do with as it likes, in the arithmetic that the task declares."""
    if precision is Precision.NATIVE or not tensor.is_floating_point():
        return tensor.clone()
    return tensor.to(torch_dtype(precision.value), copy=True)
