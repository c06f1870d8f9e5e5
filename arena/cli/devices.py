"""`--platform` and `--devices`: what to evaluate on, for every command that starts a judge."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Annotated

import typer

from arena.cli.console import err
from arena.errors import UsageError


def _known(name: str | None) -> str | None:
    from arena.platforms import known

    return None if name is None else known(name)


Platform = Annotated[str, typer.Option(help="auto, cpu, cuda or rocm.", callback=_known)]
OtherPlatform = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda or rocm; default: the configuration's.", callback=_known)
]
EXECUTOR = typer.Option(help="Where judges run: local (this machine) or ray (a cluster).")
ALLOW_MIXED = typer.Option(help="Go on where another judge, agent program or limit began; pages mark the run as mixed.")
ADDRESS = typer.Option(help="HOST:PORT of a Ray cluster; without it, Ray is started here for the run.")
ACCELERATOR = typer.Option(help="Type of GPU of the Ray cluster, such as H200 (per platform: A,B); default: the only.")
LOCK_CLOCKS = typer.Option("--lock-clocks", help="Lock the clocks of the GPUs meanwhile; needs root.")
DEVICES = typer.Option(help="GPUs that get a judge each: `all`, or numbers such as 0,1. Default: the first.")


def chosen_devices(text: str) -> tuple[int | None, ...]:
    """Numbers of GPUs; (None,) for the platform's first device. Raises `UsageError` for anything else."""
    if not text:
        return (None,)
    if text == "all":
        from arena.platforms import device_count

        return tuple(range(device_count())) or (None,)
    try:
        numbers = tuple(int(number) for number in text.split(","))
    except ValueError:
        raise UsageError(f"--devices {text!r}: expected `all`, or numbers with commas between them") from None
    if len(set(numbers)) < len(numbers) or min(numbers) < 0:
        raise UsageError(f"--devices {text!r}: every device once, counted from 0")
    return numbers


def warn_before(platform: str, devices: Sequence[int | None] = (None,), choice: str = "") -> None:
    """Print warnings about GPUs that a judge is about to measure: other processes, clocks, temperature."""
    from arena.platforms.condition import warnings_before

    for warning in warnings_before(platform, devices, choice):
        err.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)


def with_locked_clocks(platform: str, devices: Sequence[int | None] = (None,)) -> AbstractContextManager[None]:
    """Return a context with locked clocks, which prints how to reset them."""
    from arena.platforms.clocks import locked_clocks

    return locked_clocks(platform, devices, lambda line: err.print(line, markup=False, highlight=False, soft_wrap=True))
