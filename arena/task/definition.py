"""Tasks and cases: one kernel problem, and its concrete configurations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from arena.results.record import Split
from arena.task.declaration import MODULE_CLASSES as MODULE_CLASSES
from arena.task.declaration import Arithmetic as Arithmetic
from arena.task.declaration import Axis as Axis
from arena.task.declaration import Fill as Fill
from arena.task.declaration import ModuleInterface as ModuleInterface
from arena.task.declaration import OutputComparison as OutputComparison
from arena.task.declaration import Precision as Precision
from arena.task.declaration import Tolerance as Tolerance
from arena.task.declaration import ViewOf as ViewOf
from arena.task.expression import Expression, ExpressionError, Number
from arena.task.fp8 import FNUZ, FP8, OCP, fp8_format
from arena.task.task_type import TaskType as TaskType

Scalar = int | float | bool
DTYPE_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    OCP: 1,
    FNUZ: 1,
    "float8_e5m2": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
FLOATING = ("float64", "float32", "float16", "bfloat16", OCP, FNUZ, "float8_e5m2")
MOST_HELD_BYTES = 16 << 30
"""of one set of arguments: some sets, the reference in float64 and its intermediates must fit beside each other"""
ANY_NUMBER = (-math.inf, math.inf)
LARGE, ASYMMETRIC = "large", "asymmetric"
KINDS = (
    *("edge", "scale_up", "scale_down", "alignment", ASYMMETRIC, "production", "dtype", "structure", "values"),
    LARGE,
)
LARGE_ELEMENTS = 1 << 31
"""a case of the kind `large` has a tensor that spans more elements: offsets of 32 bits do not reach its end"""


@dataclass(frozen=True)
class TensorSpec:
    """A declared input or output tensor. `dtype` is a name of `DTYPE_BYTES`, `fp8`, or `$variable`.

    `strides` and `offset` are in elements, `offset` from the start of a buffer, or of the tensor that it is a view of.
    """

    name: str
    shape: tuple[Expression, ...]
    dtype: str
    doc: str = ""
    strides: tuple[Expression, ...] = ()
    offset: Expression | None = None
    view_of: ViewOf | None = None
    fill: Fill | None = None
    mutable: bool = False
    optional: bool = False
    constant: bool = False
    """whether calls of one worker all have the same values, as a layer's weights do"""
    domain: tuple[float, float] = ANY_NUMBER
    """the least and the greatest number that it may hold, infinities and NaN aside"""
    tolerance: Tolerance | None = None


@dataclass(frozen=True)
class ScalarSpec:
    """A declared scalar input: `float32`, `int64`, `int32` or `bool`, with the value used where a case sets none."""

    name: str
    dtype: str
    value: Scalar
    doc: str = ""
    domain: tuple[float, float] = ANY_NUMBER
    """the least and the greatest number that a case may set"""


InputSpec = TensorSpec | ScalarSpec


@dataclass(frozen=True)
class Case:
    """One concrete configuration of a task."""

    id: str
    split: Split
    kind: str
    values: Mapping[str, Scalar | str]
    omit: frozenset[str] = frozenset()
    fills: Mapping[str, Fill] = field(default_factory=dict)
    """of inputs whose values this case draws in another way than the task declares"""
    note: str = ""
    timed: bool = False
    """whether speed counts as well as correctness: sizes of production, long enough to be measured"""
    calls: int = 0
    """how many calls of this size recorded traffic has; 0: none was recorded"""
    gpu_share: float = 0.0
    """per cent of the GPU's time in recorded traffic that such calls took; 0: not known"""
    implied: frozenset[str] = frozenset()
    """the axes that it leaves at their default"""
    position: int = 0
    """its place in the file, from 0; a regime has that of the case of which it is one"""
    regime: str = ""
    """the name of its values: others than usual, in tensors of the same sizes; empty: the usual ones"""

    @property
    def label(self) -> str:
        """`M=4 N=256 float32`, for tables and logs."""
        given = {name: value for name, value in self.values.items() if name not in self.implied}
        parts = [value if isinstance(value, str) else f"{name}={value}" for name, value in given.items()]
        drawn = (f"{name} {fill.label}" for name, fill in self.fills.items())
        return " ".join([*parts, *(f"without {name}" for name in sorted(self.omit)), *drawn])


@dataclass(frozen=True)
class Work:
    """What a call must do at least: dense-equivalent floating-point operations and bytes of memory traffic."""

    flops: Expression
    bytes: Expression | None = None
    number_format: str = ""


@dataclass(frozen=True)
class Task:
    """One kernel problem, as its folder declares it.

    `definition` is the folder whose task.yaml and reference.py say what is computed: `path`, or that of the task of
    another type which has the same operator.
    """

    id: str
    task_type: TaskType
    suite: str
    name: str
    summary: str
    entry: str
    axes: tuple[Axis, ...]
    dtypes: Mapping[str, tuple[str, ...]]
    constraints: tuple[Expression, ...]
    inputs: tuple[InputSpec, ...]
    outputs: tuple[TensorSpec, ...]
    work: Work
    seen: tuple[Case, ...]
    heldout: tuple[Case, ...]
    path: Path
    definition: Path
    content_hash: str
    source: str = ""
    family: str = ""
    """near-duplicates share one; of a loaded task never empty, its own name unless task.yaml has another"""
    module: ModuleInterface | None = None
    """how a candidate may be a module; None: it has to define the entry function"""
    independent: str = ""
    """the axis along which no row of an output depends on another row of an input"""
    latency_bound: str = ""
    least_triton: str = ""
    arithmetic: Arithmetic = Arithmetic.INPUTS
    precision: Precision = Precision.FLOAT64
    exceptions: Mapping[str, str] = field(default_factory=dict)
    """items of `arena tasks check` that do not hold, with the reason"""
    equivalent_mutants: Mapping[str, str] = field(default_factory=dict)
    """mutants of the baseline kernel, `line:column fault`, that compute the same, with the reason"""
    fp8: str = OCP
    """what the dtype `fp8` is; see `on`"""

    def on(self, arch: str) -> Task:
        """Return the same task, with `fp8` as the architecture has it: `arena.task.fp8`."""
        return replace(self, fp8=fp8_format(arch))

    def format(self, dtype: str) -> str:
        """Return the name of a dtype as PyTorch has it: `fp8` resolved."""
        return self.fp8 if dtype == FP8 else dtype

    @property
    def reference_path(self) -> Path:
        """The PyTorch function that defines what is correct."""
        return self.definition / "reference.py"

    @property
    def baseline_kernel(self) -> Path | None:
        """The kernel given to the agent; None where that is a PyTorch function."""
        path = self.path / self.task_type.kernel_file
        return None if self.task_type.from_pytorch else path

    @property
    def trusted_kernel(self) -> Path | None:
        """A solution to check the task by: its baseline kernel, or that of the task with the same operator."""
        path = self.definition / self.task_type.kernel_file
        return path if path.is_file() else self.expert

    @property
    def expert(self) -> Path | None:
        """A better solution, known correct, where the task, or the one that defines its operator, has one."""
        name = f"expert{Path(self.task_type.kernel_file).suffix}"
        found = (folder / name for folder in (self.path, self.definition))
        return next((path for path in found if path.is_file()), None)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Seen, then held-out."""
        return self.seen + self.heldout

    def identity(self, case: Case) -> frozenset[tuple[str, object]]:
        """What makes a case the same as another: its values, scalars it leaves at their default included."""
        defaults: dict[str, object] = {spec.name: spec.value for spec in self.inputs if isinstance(spec, ScalarSpec)}
        others = {**dict.fromkeys(case.omit), **{name: fill.label for name, fill in case.fills.items()}}
        return frozenset({**defaults, **case.values, **others}.items())

    @property
    def constants(self) -> tuple[str, ...]:
        """The names of the inputs that keep their values."""
        return tuple(spec.name for spec in self.tensors if spec.constant)

    @property
    def takes_modules(self) -> bool:
        """Return whether a candidate may be a module, which is a file of Python."""
        return self.module is not None and self.task_type.triton

    @property
    def takes_metadata(self) -> bool:
        """Return whether host code may work with integers by PyTorch: where none of them can be a result."""
        results = (*self.outputs, *(spec for spec in self.tensors if spec.mutable))
        return all(spec.dtype in (*FLOATING, FP8) or spec.dtype.startswith("$") for spec in results)

    @property
    def called(self) -> tuple[str, ...]:
        """The names that the judge looks up in a file of Python."""
        return (self.entry, *(MODULE_CLASSES if self.takes_modules else ()))

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Every tensor argument in call order: inputs, then outputs."""
        return (*(spec for spec in self.inputs if isinstance(spec, TensorSpec)), *self.outputs)


@dataclass(frozen=True)
class Tensor:
    """A tensor argument of one case: concrete shape and strides in elements, dtype by name."""

    spec: TensorSpec
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    offset: int = 0
    """elements before the first one: of its own buffer, or from the first of `base`"""
    base: str = ""
    """the input whose memory it lies in, if it has none of its own"""

    @property
    def name(self) -> str:
        """The argument's name."""
        return self.spec.name

    @property
    def span(self) -> int:
        """Elements from the first to the last one, gaps included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def numel(self) -> int:
        """Number of elements, gaps left out."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def stored(self) -> int:
        """Number of different elements in memory: what a stride of 0 repeats is one, and a view has none."""
        count = 0 if self.base else 1
        for size, stride in zip(self.shape, self.strides, strict=True):
            count *= min(size, 1) if stride == 0 else size
        return count

    @property
    def once(self) -> tuple[slice, ...]:
        """The part that memory holds: of what a stride of 0 repeats the first alone."""
        return tuple(slice(0, 1) if stride == 0 else slice(None) for stride in self.strides)

    @property
    def item_bytes(self) -> int:
        """Bytes per element."""
        return DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class Arguments:
    """A case with every size worked out."""

    task: Task
    case: Case
    names: Mapping[str, Number]
    tensors: Mapping[str, Tensor | None]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The input tensors that the case passes."""
        found = (self.tensors[spec.name] for spec in self.task.inputs if isinstance(spec, TensorSpec))
        return tuple(tensor for tensor in found if tensor is not None)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The output tensors."""
        found = (self.tensors[spec.name] for spec in self.task.outputs)
        return tuple(tensor for tensor in found if tensor is not None)

    def scalar(self, spec: ScalarSpec) -> Scalar:
        """The value of a scalar input in this case."""
        value = self.case.values.get(spec.name, spec.value)
        assert not isinstance(value, str)
        return value

    @property
    def flops(self) -> float:
        """Declared floating-point operations of one call."""
        return float(self.task.work.flops.value(self.names))

    @property
    def num_bytes(self) -> float:
        """Bytes one call must move: declared, else every input and output once (a mutable input twice)."""
        if self.task.work.bytes is not None:
            return float(self.task.work.bytes.value(self.names))
        return self.argument_bytes

    @property
    def argument_bytes(self) -> float:
        """Bytes of every input and output once; of a mutable input twice, since it is read and written."""
        moved = sum(t.stored * t.item_bytes * (2 if t.spec.mutable else 1) for t in self.inputs)
        return float(moved + sum(t.numel * t.item_bytes for t in self.outputs))

    @property
    def held_bytes(self) -> int:
        """Bytes of all tensors, gaps included, whether a call touches them or not."""
        owners = (tensor for tensor in (*self.inputs, *self.outputs) if not tensor.base)
        return sum((tensor.offset + tensor.span) * tensor.item_bytes for tensor in owners)

    @property
    def operand_format(self) -> str:
        """The format to which a kernel may round operands of matrix products: a 16-bit dtype, `tf32` or `float32`."""
        allowed = self.task.arithmetic
        if allowed is Arithmetic.FLOAT32:
            return "float32"
        short = next((tensor.dtype for tensor in self.inputs if tensor.dtype in ("float16", "bfloat16")), None)
        return short or ("tf32" if allowed is Arithmetic.TF32 else "float32")

    @property
    def number_format(self) -> str:
        """The format whose peak rate bounds the arithmetic: declared, else the fastest that is allowed.

        That is the first floating input's dtype, or the operands' format where that is shorter than float32.
        """
        declared = self.task.work.number_format
        if declared:
            named = str(self.case.values[declared[1:]]) if declared.startswith("$") else declared
            return self.task.format(named)
        floating = [tensor.dtype for tensor in self.inputs if tensor.dtype in FLOATING]
        first = floating[0] if floating else "float32"
        return self.operand_format if first == "float32" else first


def arguments(task: Task, case: Case) -> Arguments:
    """Work out the sizes of one case. Raises `ExpressionError` where a shape has no value for it."""
    names: dict[str, Number] = {}
    for scalar in task.inputs:
        if isinstance(scalar, ScalarSpec):
            names[scalar.name] = scalar.value
    names.update({name: value for name, value in case.values.items() if not isinstance(value, str)})
    for variable in task.dtypes:
        names[f"{variable}_bytes"] = DTYPE_BYTES[task.format(str(case.values[variable]))]
    tensors: dict[str, Tensor | None] = {}
    for spec in task.tensors:
        tensors[spec.name] = None if spec.name in case.omit else _concrete(task, spec, case, names)
    return Arguments(task, case, names, tensors)


def _concrete(task: Task, spec: TensorSpec, case: Case, names: Mapping[str, Number]) -> Tensor:
    if spec.name in case.fills:
        spec = replace(spec, fill=case.fills[spec.name])
    shape = tuple(size.integer(names) for size in spec.shape)
    for size, text in zip(shape, spec.shape, strict=True):
        if size < 0:
            raise ExpressionError(f"{spec.name}: `{text.text}` in its shape is {size}; sizes are 0 or more")
    if spec.strides:
        strides = tuple(stride.integer(names) for stride in spec.strides)
    else:
        strides = contiguous(shape)
    dtype = str(case.values[spec.dtype[1:]]) if spec.dtype.startswith("$") else spec.dtype
    offset = spec.offset.integer(names) if spec.offset is not None else 0
    view = spec.view_of
    base = view.input if view is not None and (view.when is None or view.when.value(names)) else ""
    return Tensor(spec, shape, strides, task.format(dtype), offset, base)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a tensor whose elements lie side by side in row-major order."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
