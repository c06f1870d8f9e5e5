"""`arena capture`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.console import examples, out, print_json
from arena.errors import UsageError

if TYPE_CHECKING:
    from arena.task.corpus.captured_calls import CallsAlike, CapturedCalls

EXAMPLES = examples(
    "arena capture torch.nn.functional:gelu train.py --steps 5",
    "arena capture --out calls.json my_engine.kernels:rms_norm_kernel serve.py --requests 100",
    "arena capture -m my_engine.ops:fused_moe my_engine.benchmark",
    "arena tasks new triton2triton my_norm --from calls.json",
)
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
_SHOWN = 20


def capture(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="`package.module:function`, also a method or a Triton kernel.")],
    script: Annotated[str, typer.Argument(help="The program to run; what follows it is passed to it.")],
    module: Annotated[bool, typer.Option("--module", "-m", help="SCRIPT is a module, as for `python -m`.")] = False,
    path: Annotated[Path, typer.Option("--out", "-o", help="File of the calls; replaced.")] = Path("capture.json"),
    as_json: Annotated[bool, typer.Option("--json", help="The calls as JSON, instead of a table.")] = False,
) -> None:
    """Run a Python program and record each call of one function: shapes, dtypes, strides, scalars, how often.

    Options come before TARGET. The program runs in this process, unconfined: only run what you trust.

    Not seen are calls in other processes, in replays of a CUDA graph, below `torch.compile`, and functions that the
    program itself defines.
    Where the program fails, the calls until then are written.
    """
    from arena.api.capture import capture as recording

    if script.startswith("-"):
        raise UsageError(f"{script} comes after TARGET: options of `arena capture` come before it")
    if not module and not Path(script).is_file():
        raise UsageError(f"{script} is no file; for a module write `arena capture --module {target} {script}`")
    sys.argv = [script, *context.args]
    sys.path.insert(0, "" if module else str(Path(script).resolve().parent))
    failure: BaseException | None = None
    with recording(target) as recorder:
        try:
            if module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as left:
            failure = left if left.code else None
        except Exception as raised:  # the user's own program: what it did until then counts
            failure = raised
    if failure is not None:
        out.print(f"{script} ended with {type(failure).__name__}: {failure}", markup=False, soft_wrap=True)
    calls = recorder.calls()
    calls.write(path)
    if as_json:
        print_json(calls)
    else:
        _show(calls, path)
    if failure is not None:
        raise typer.Exit(1)


def _show(calls: CapturedCalls, path: Path) -> None:
    from rich.table import Table

    table = Table("calls", "share", "arguments", title=f"{calls.function}: {calls.calls:,} calls on {calls.device}")
    for alike in calls.alike[:_SHOWN]:
        table.add_row(f"{alike.calls:,}", f"{alike.calls / calls.calls:.1%}", _words(alike))
    out.print(table)
    if len(calls.alike) > _SHOWN:
        out.print(f"and {len(calls.alike) - _SHOWN} more kinds of call")
    out.print(f"wrote {path}; next: arena tasks new triton2triton NAME --from {path}", soft_wrap=True)


def _words(alike: CallsAlike) -> str:
    from arena.task.corpus.captured_calls import ScalarSeen, TensorSeen

    words = []
    for name, value in alike.arguments.items():
        if isinstance(value, TensorSeen):
            strides = f" strides {list(value.strides)}" if value.strides else ""
            words.append(f"{name} {'×'.join(map(str, value.shape))} {value.dtype}{strides}")
        elif isinstance(value, ScalarSeen) and value.value is not None:
            words.append(f"{name}={value.value}")
    return ", ".join(words)
