"""The script of a dumped call: it loads the tensors, calls the kernel without this package, and compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from arena.platforms.toolchains.task_header import passed_axes
from arena.results.verdict import Status
from arena.task.definition import Arguments, ScalarSpec

INPUTS, EXPECTED, ALLOWED, GOT = "inputs", "expected", "allowed", "got"
_C_SCALARS = {"float32": "c_float", "int64": "c_int64", "int32": "c_int32", "bool": "c_bool"}
_COMPARE = """
for name, limit in allowed.items():
    got, wanted, rounded = (t.double() for t in (tensors[name], expected[name], expected[name].to(tensors[name].dtype)))
    same = (got == rounded) | (got.isnan() & wanted.isnan())
    over = torch.where(same, 0.0, ((got - wanted).abs() / limit).nan_to_num(torch.inf, torch.inf))
    if over.numel():
        at = tuple(int(i) for i in torch.unravel_index(over.argmax(), over.shape))
        print(f"{name}{list(at)}: got {got[at]:.9g}, expected {wanted[at]:.9g} ± {limit[at]:.3g}", end=" ")
        print(f"({over[at]:.3g} × tolerance)")
        wrong |= bool(over[at] > 1)
sys.exit(wrong)
"""


@dataclass(frozen=True)
class DumpedCall:
    """One call of a candidate.

    Attributes:
        arguments: the case.
        status: how the call ended.
        kernel: the name of the kernel's file, a copy of which lies beside the script.
        emulated: whether it ran on the CPU.
        plain: whether the tensors are in `.npz` files; else in `.pt` files, which keep strides.
        command: how a HIP kernel is compiled; empty for Triton.
        not_compared: outputs that are not compared element by element, each with the rule of its comparison.
    """

    arguments: Arguments
    status: Status
    kernel: str
    emulated: bool
    plain: bool
    command: str
    not_compared: Mapping[str, str]


def script(call: DumpedCall) -> str:
    """Return the text of the script: it exits with 1 where an element is further off than the judge allows."""
    return "\n".join([*_head(call), *_tensors(call), *(_hip(call) if call.command else _triton(call))]) + _COMPARE


def _head(call: DumpedCall) -> Iterator[str]:
    case = call.arguments.case
    said = f"Repeat a call of `{call.arguments.task.entry}` in {case.id} ({case.label}), which ended as {call.status}."
    yield f'"""{said} Exit code 1: wrong.'
    yield ""
    if call.command:
        yield "Compile the kernel first, in this folder:"
        yield ""
        yield f"    {call.command}"
        yield ""
        if call.emulated:
            yield f"`rewritten.cpp` is {call.kernel} as the emulation compiles it; a new evaluation writes it anew."
    yield f'Usage: python reproduce.py [{"LIBRARY" if call.command else "KERNEL_FILE"}]\n"""\n'
    yield f"import {'ctypes' if call.command else 'os, runpy'}, sys"
    yield "from pathlib import Path"
    if call.emulated and not call.command:
        yield 'os.environ["TRITON_INTERPRET"] = "1"'
    yield f"import {'numpy, torch' if call.plain else 'torch'}\n"


def _tensors(call: DumpedCall) -> Iterator[str]:
    device = "cpu" if call.emulated else "cuda"
    yield f'here, device = Path(__file__).parent, "{device}"'
    load = 'torch.load(here / f"{file}.pt", map_location=device)'
    if call.plain:
        load = '{n: torch.from_numpy(a).to(device) for n, a in numpy.load(here / f"{file}.npz").items()}'
    yield f'tensors, expected, allowed = ({load} for file in ("{INPUTS}", "{EXPECTED}", "{ALLOWED}"))'
    for tensor in call.arguments.inputs:
        fill = tensor.spec.fill
        if fill is not None and fill.kind == "addresses":
            yield f'tensors["{tensor.name}"] += tensors["{fill.arguments["of"]}"].data_ptr()  # rows, by address'
    for tensor in call.arguments.outputs:
        size = (tensor.offset + tensor.span) * tensor.item_bytes
        fill_byte = 0 if tensor.dtype == "bool" else 255
        memory = f"torch.full(({size},), {fill_byte}, dtype=torch.uint8, device=device).view(torch.{tensor.dtype})"
        layout = f"as_strided({_tuple(tensor.shape)}, {_tuple(tensor.strides)}, {tensor.offset})"
        yield f'tensors["{tensor.name}"] = {memory}.{layout}'
    for name, rule in call.not_compared.items():
        yield f"# {name}: the judge compares it by the rule `{rule}`, which this script does not repeat"


def _triton(call: DumpedCall) -> Iterator[str]:
    entry = call.arguments.task.entry
    yield f'kernel = runpy.run_path(sys.argv[1] if len(sys.argv) > 1 else str(here / "{call.kernel}"))'
    yield f'kernel["{entry}"]({", ".join(_values(call))})'
    yield "wrong = False"


def _values(call: DumpedCall) -> Iterator[str]:
    for spec in (*call.arguments.task.inputs, *call.arguments.task.outputs):
        if isinstance(spec, ScalarSpec):
            yield repr(call.arguments.scalar(spec))
        else:
            yield f'tensors["{spec.name}"]' if call.arguments.tensors[spec.name] is not None else "None"


def _hip(call: DumpedCall) -> Iterator[str]:
    arguments, entry = call.arguments, call.arguments.task.entry
    yield 'library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else str(here / "kernel.so"))'
    axes = ", ".join(f"ctypes.c_int64({int(arguments.names[axis.name])})" for axis in passed_axes(arguments.task))
    yield f"sizes, scratch = [{axes}], []"
    yield f'if hasattr(library, "{entry}_workspace"):'
    yield f"    library.{entry}_workspace.restype = ctypes.c_size_t"
    yield f"    scratch = [torch.empty(library.{entry}_workspace(*sizes), dtype=torch.uint8, device=device)]"
    yield "pointer = lambda tensor: ctypes.c_void_p(tensor.data_ptr())"
    yield f"code = library.{entry}("
    for spec in (*arguments.task.inputs, *arguments.task.outputs):
        if isinstance(spec, ScalarSpec):
            yield f"    ctypes.{_C_SCALARS[spec.dtype]}({arguments.scalar(spec)!r}),  # {spec.name}"
        else:
            passed = arguments.tensors[spec.name] is not None
            yield f'    pointer(tensors["{spec.name}"]),' if passed else f"    ctypes.c_void_p(),  # {spec.name}"
    yield "    *sizes,"
    yield "    *map(pointer, scratch),"
    yield "    ctypes.c_void_p(),  # the stream"
    yield ")"
    yield f'print("{entry} returned", code)'
    yield "wrong = code != 0"
    if not call.emulated:
        yield "torch.cuda.synchronize()"


def _tuple(values: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"
