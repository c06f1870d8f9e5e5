"""Write the tensors of one call, and a script that repeats it: `arena evaluate --dump`.

Everything is the judge's own: the inputs it drew, the results of the reference, and the outputs that it read from the
shared buffer while the worker was stopped.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.judge.compile.stage import by_hand
from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.script import ALLOWED, EXPECTED, GOT, INPUTS, DumpedCall, script
from arena.judge.correctness.verify import allowed_errors, comparison_of
from arena.results.environment import DeviceFacts
from arena.results.verdict import Status
from arena.task.definition import LARGE, Tensor, contiguous
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

SCRIPT = "reproduce.py"
_POISON = 0xFF
"""NaN in most floats, -1 in integers: what lies between the elements of an input"""
_OF_NUMPY = frozenset({"float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"})
_SUFFIXES = (".npz", ".pt")


class CallDump:
    """Writes the first call that fails into a folder, or else the last one of the case that was asked for."""

    def __init__(self, folder: Path, candidate: Path, facts: DeviceFacts, wanted: str = "") -> None:
        """`candidate`: the kernel's file. `wanted`: the id of the case that is written although it passes."""
        self._folder, self._candidate, self._facts, self._wanted = folder, candidate, facts, wanted
        self._failed = False
        self.wave_size = facts.wave_size
        """of the build that is called, where the emulation tries two"""
        self.case = ""
        """the id of the case that was written; empty: none"""

    @contextmanager
    def at_wave_size(self, lanes: int) -> Iterator[None]:
        """Say that calls within are of a build for another wave size."""
        before, self.wave_size = self.wave_size, lanes
        yield
        self.wave_size = before

    def note(
        self, status: Status, sets: Sets, inputs: Mapping[str, torch.Tensor], reference: Reference, *, answered: bool
    ) -> None:
        """Write a call if it is the one; `answered`: whether it came back, so that there are outputs."""
        case, failed = sets.arguments.case, status is not Status.PASSED
        if self._failed or case.kind == LARGE or not (failed or case.id == self._wanted):
            return
        try:
            self._write(status, sets, inputs, reference, answered=answered)
        except OSError as problem:  # of the folder: no fault of the candidate's
            logging.getLogger(__name__).warning("the call of %s was not written: %s", case.id, problem)
            return
        self._failed, self.case = failed, case.id

    def _write(
        self, status: Status, sets: Sets, inputs: Mapping[str, torch.Tensor], reference: Reference, *, answered: bool
    ) -> None:
        arguments, task = sets.arguments, sets.arguments.task
        plain = all(map(_is_plain, (*arguments.inputs, *arguments.outputs)))
        expected = reference(arguments, inputs)
        allowed = allowed_errors(arguments, reference, inputs, expected)
        laid_out = inputs if plain else _laid_out(arguments.inputs, inputs)
        tensors = {INPUTS: laid_out, EXPECTED: expected, ALLOWED: allowed}
        if answered:
            tensors[GOT] = {name: sets.view(name)[0].contiguous() for name in expected}
        facts = replace(self._facts, wave_size=self.wave_size)
        hip = not task.task_type.triton
        files, command = by_hand(task, self._candidate, arguments.case, facts) if hip else ({}, "")
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in (INPUTS, EXPECTED, ALLOWED, GOT):
            for suffix in _SUFFIXES:
                (self._folder / f"{name}{suffix}").unlink(missing_ok=True)
        for name, values in tensors.items():
            self._save(f"{name}{_SUFFIXES[0 if plain else 1]}", values)
        others = {name: str(comparison_of(arguments, name)) for name in expected if name not in allowed}
        call = DumpedCall(arguments, status, self._candidate.name, facts.emulated, plain, command, others)
        for name, text in {**files, SCRIPT: script(call)}.items():
            with self._file(name) as path:
                path.write_text(text, encoding="utf-8")
        with self._file(self._candidate.name) as path:
            shutil.copyfile(self._candidate, path)

    def _save(self, name: str, tensors: Mapping[str, torch.Tensor]) -> None:
        import numpy as np
        import torch

        on_host = {key: tensor.detach().cpu() for key, tensor in tensors.items()}
        with self._file(name) as path:
            if name.endswith(".npz"):
                arrays: dict[str, Any] = {key: tensor.numpy() for key, tensor in on_host.items()}
                with path.open("wb") as file:
                    np.savez(file, **arrays)
            else:
                torch.save(on_host, path)

    def _file(self, name: str) -> _Replaced:
        return _Replaced(self._folder / name)


class _Replaced:
    """A new file that takes the place of another once it is complete; a link in that place is not followed."""

    def __init__(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._place = place

    def __enter__(self) -> Path:
        descriptor, name = tempfile.mkstemp(dir=self._place.parent, prefix=f".{self._place.name}.")
        os.close(descriptor)
        self._new = Path(name)
        return self._new

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._new.chmod(0o644)
            self._new.replace(self._place)
        else:
            self._new.unlink(missing_ok=True)


def _is_plain(tensor: Tensor) -> bool:
    """Return whether NumPy has the dtype, and the tensor has memory of its own without gaps."""
    dense = tensor.strides == contiguous(tensor.shape) and not tensor.offset and not tensor.base
    return dense and tensor.dtype in _OF_NUMPY


def _laid_out(tensors: Sequence[Tensor], values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return tensors with the strides, offsets and shared memory that the case gives them."""
    import torch

    memories: dict[str, torch.Tensor] = {}
    for tensor in (one for one in tensors if not one.base):
        value = values[tensor.name].detach().cpu()
        size = (tensor.offset + tensor.span) * tensor.item_bytes
        memory = torch.full((size,), 0 if tensor.dtype == "bool" else _POISON, dtype=torch.uint8).view(value.dtype)
        memory.as_strided(value[tensor.once].shape, tensor.strides, tensor.offset).copy_(value[tensor.once])
        memories[tensor.name] = memory
    return {
        one.name: memories[one.base or one.name].as_strided(one.shape, one.strides, _first(one, tensors))
        for one in tensors
    }


def _first(tensor: Tensor, tensors: Sequence[Tensor]) -> int:
    """Return the elements before the first one, from the start of the memory that it lies in."""
    base = next((one for one in tensors if one.name == tensor.base), None)
    return tensor.offset + (base.offset if base is not None else 0)
