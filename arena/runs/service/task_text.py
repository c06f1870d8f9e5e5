"""TASK.md: what an agent is told of a task, from its declarations and one template per task type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment as Engine
from jinja2 import FileSystemLoader, StrictUndefined

from arena.platforms.by_hand import LIBRARY, compile_command
from arena.platforms.toolchains.kernel_library import OFFERS
from arena.platforms.toolchains.task_header import alias, passed_axes, signature
from arena.results.environment import DeviceFacts, Environment
from arena.results.session import Limits
from arena.runs.service import declarations
from arena.task.definition import ScalarSpec, Task, TensorSpec

TEMPLATES = Path(__file__).parent / "templates"
_VERSIONS = ("python", "torch", "triton", "rocm", "hip", "cuda", "nvcc", "hipcc")


@dataclass(frozen=True)
class ArgumentView:
    """One argument of the entry, as the table of arguments shows it."""

    name: str
    role: str
    shape: str
    dtype: str
    strides: str
    about: str


@dataclass(frozen=True)
class ComparedView:
    """One tensor that the judge compares."""

    name: str
    words: str


def task_text(task: Task, environment: Environment, limits: Limits) -> str:
    """The text of TASK.md."""
    device = environment.device
    return (
        _engine()
        .get_template("TASK.md.j2")
        .render(
            task=task,
            kernel=task.task_type.kernel_file,
            triton=task.task_type.triton,
            device=device,
            versions=versions_of(environment),
            peaks=peaks_of(device),
            limits=limits,
            minutes=_trimmed(limits.wall_clock_s / 60),
            signature=signature(task),
            sizes=", ".join(f"int64_t {axis.name}" for axis in passed_axes(task)),
            shared="arena.semantics" in task.reference_path.read_text(encoding="utf-8"),
            fp8=task.on(device.arch).fp8 if declarations.uses_fp8(task) else "",
            aliases=[(alias(name), name) for name in task.dtypes],
            header_dtypes=", ".join(f"{name} = {task.seen[0].values[name]}" for name in task.dtypes),
            headers=OFFERS,
            library=LIBRARY,
            compile_by_hand="" if task.task_type.triton else compile_command(task.task_type.kernel_file, device),
            arguments=list(argument_views(task)),
            strided=any(spec.strides or spec.offset for spec in task.tensors),
            compared=compared_views(task),
            arithmetic=declarations.arithmetic_words(task),
            close=any("RMS" in view.words for view in compared_views(task)),
            module=task.module if task.takes_modules else None,
            constants=task.constants,
            optional=[spec.name for spec in task.tensors if spec.optional],
            mutable=[spec.name for spec in task.tensors if spec.mutable],
            results=_results(task),
            reference=declarations.reference_words(task),
            seen=sum(not case.regime for case in task.seen),
            timed=sum(case.timed and not case.regime for case in task.seen),
            regimes=any(case.regime for case in task.seen),
            recorded=any(case.calls or case.gpu_share for case in task.seen),
            number=_trimmed,
        )
    )


@cache
def _engine() -> Engine:
    """Templates that fail on a name that is not there, kept once they are compiled."""
    engine = Engine(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters |= {"cell": _cell, "code": "`{}`".format, "expressions": declarations.init_words}
    return engine


def argument_views(task: Task) -> Iterator[ArgumentView]:
    """Every argument in call order; a tensor that is dense has no strides of its own."""
    for spec in (*task.inputs, *task.outputs):
        if isinstance(spec, ScalarSpec):
            about = "; ".join(
                filter(None, (spec.doc, declarations.range_words(spec), declarations.scalar_words(task, spec)))
            )
            yield ArgumentView(spec.name, "scalar", "", spec.dtype, "", about)
        else:
            yield _tensor_view(task, spec)


def _tensor_view(task: Task, spec: TensorSpec) -> ArgumentView:
    role = "output" if spec in task.outputs else "input, read and written" if spec.mutable else "input"
    if spec.optional:
        role += ", optional"
    words = (
        spec.doc,
        declarations.range_words(spec),
        declarations.fill_words(spec.fill),
        declarations.view_words(spec),
    )
    about = "; ".join(filter(None, words))
    strides = declarations.layout_words(spec)
    return ArgumentView(
        spec.name, role, declarations.shape_words(spec.shape), declarations.dtype_words(spec), strides, about
    )


def compared_views(task: Task) -> list[ComparedView]:
    """Outputs and mutable inputs, each with how it is compared."""
    specs = [*task.outputs, *(spec for spec in task.tensors if spec.mutable)]
    return [ComparedView(spec.name, declarations.comparison_words(task, spec)) for spec in specs]


def versions_of(environment: Environment) -> str:
    """Libraries and compilers of which an agent may want to know the version."""
    known = [(name, environment.versions[name]) for name in _VERSIONS if name in environment.versions]
    return ", ".join(f"{name} {version}" for name, version in known)


def peaks_of(device: DeviceFacts) -> str:
    """Peak rates in one line, or nothing where they are not known."""
    rates = [f"{name} {_trimmed(rate)}" for name, rate in sorted(device.peak_tflops.items())]
    bandwidth = f"memory {_trimmed(device.peak_bandwidth_gbs)} GB/s" if device.peak_bandwidth_gbs else ""
    return "; ".join(filter(None, (bandwidth, f"TFLOP/s: {', '.join(rates)}" if rates else "")))


def _results(task: Task) -> str:
    """What a call may write to."""
    mutable = "inputs that are read and written" if any(spec.mutable for spec in task.tensors) else ""
    return " and ".join(filter(None, ("outputs" if task.outputs else "", mutable)))


def _cell(text: str) -> str:
    """Text that does not end a cell of a table."""
    return text.replace("|", "\\|")


def _trimmed(value: float) -> str:
    """A number without decimals that say nothing."""
    return f"{value:.4g}" if value < 1000 else f"{value:.0f}"
