"""A problem that can be run: on the meta device at any sizes, and on the CPU at small ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import torch

from arena.integrations.importers.problem import Problem, Reason, Skipped, TooSlow
from arena.integrations.importers.trace import Drawn, InputRecorder, Trace, WorkRecorder, dtype_name
from arena.semantics.modules import build_module
from arena.task.definition import FLOATING

Sizes = Mapping[str, int]
_MOST_SECONDS = 90.0


class ProblemProgram:
    """A `Problem` whose text has been executed."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._names: dict[str, Any] = {"__name__": f"arena_import_{problem.name}"}
        self._run("module", exec, compile(f"{problem.text}\n{problem.probe}", problem.origin, "exec"), self._names)
        self._deadline = time.monotonic() + _MOST_SECONDS
        self._traces: dict[tuple[int, ...], Trace | Skipped] = {}

    def trace(self, sizes: Sizes) -> Trace:
        """Return one run at these sizes on the meta device; raises `Skipped`. Runs are kept."""
        key = self._key(sizes)
        if key not in self._traces:
            if time.monotonic() > self._deadline:
                raise TooSlow(Reason.RUN, f"too slow: more than {_MOST_SECONDS:.0f} s on the meta device")
            try:
                self._traces[key] = self._run("meta device", self._trace, key)
            except Skipped as problem:
                self._traces[key] = problem
        found = self._traces[key]
        if isinstance(found, Skipped):
            raise found
        return found

    def runs(self, sizes: Sizes) -> bool:
        """Return whether it runs at these sizes."""
        try:
            self.trace(sizes)
        except Skipped as problem:
            if isinstance(problem, TooSlow) or problem.reason is not Reason.RUN:
                raise
            return False
        return True

    def _key(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(int(sizes.get(name, base)) for name, base in self.problem.sizes.items())

    def _trace(self, key: tuple[int, ...]) -> Trace:
        with torch.device("meta"), InputRecorder() as recorder:
            made = self._names["_inputs"](*key)
        inputs, given = [], {}
        for name, value in zip(self.problem.arguments, made, strict=True):
            inputs.append(_drawn(name, value, recorder))
            given[name] = value
        weights: dict[str, tuple[int, ...]] = {}
        if "_model" in self._names:
            module = build_module(self._names["_model"], key, "meta")
            _check_state(module)
            arguments = {n: w for n, w in module.named_parameters() if n in self.problem.weights}
            if len(arguments) != len(self.problem.weights):
                raise Skipped(Reason.RUN, "which weights it has depends on the sizes")
            for name, weight in arguments.items():
                weights[self.problem.weights[name]] = tuple(weight.shape)
                given[self.problem.weights[name]] = weight.detach()
        trace = Trace(inputs, weights)
        with torch.no_grad(), WorkRecorder(trace):
            result = self._reference(key, given)
        trace.outputs = [(tuple(value.shape), dtype_name(value.dtype)) for value in result]
        return trace

    def _reference(self, key: tuple[int, ...], given: Mapping[str, Any]) -> Sequence[torch.Tensor]:
        result = self._names["reference"](**given, **dict(zip(self.problem.sizes, key, strict=True)))
        found = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if not found or not all(isinstance(value, torch.Tensor) for value in found):
            raise Skipped(Reason.OUTPUT, "the result is neither a tensor nor a tuple of tensors")
        return found

    def check_on_cpu(self, sizes: Sizes) -> None:
        """Run at small sizes on the CPU in float64; raises `Skipped` where that fails or is no function of inputs."""
        key, trace = self._key(sizes), self.trace(sizes)
        generator = torch.Generator().manual_seed(0)
        given: dict[str, Any] = {}
        for drawn in trace.inputs:
            given[drawn.name] = _value(drawn, generator)
        for name, shape in trace.weights.items():
            given[name] = torch.randn(shape, generator=generator, dtype=torch.float64)
        before = {name: value.clone() for name, value in given.items() if isinstance(value, torch.Tensor)}
        with torch.no_grad():
            results = self._run("CPU in float64", self._reference, key, given)
        if not all(torch.equal(given[name], value) for name, value in before.items()):
            raise Skipped(Reason.STATE, "it changes its inputs")
        for value, (shape, _) in zip(results, trace.outputs, strict=True):
            if value.is_floating_point() and value.dtype != torch.float64:
                raise Skipped(Reason.FLOAT64, f"the result is {dtype_name(value.dtype)} for inputs in float64")
            if tuple(value.shape) != shape:
                raise Skipped(Reason.RUN, f"the result has shape {tuple(value.shape)}, on the meta device {shape}")
            if value.is_floating_point() and not bool(value.isfinite().all()):
                raise Skipped(Reason.OUTPUT, "the result holds infinities or NaN for normal inputs")
        self._check_buffers(key)

    def _check_buffers(self, key: tuple[int, ...]) -> None:
        if "_model" not in self._names:
            return
        first, second = (dict(build_module(self._names["_model"], key, "cpu").named_buffers()) for _ in range(2))
        for name, value in first.items():
            if not torch.equal(value, second[name]):
                raise Skipped(Reason.RANDOM, f"the buffer `{name}` is drawn when the model is built")

    def _run(self, where: str, function: Any, *args: Any) -> Any:
        try:
            with redirect_stdout(StringIO()):
                return function(*args)
        except Skipped:
            raise
        except Exception as problem:  # the problem's own code may raise whatever it likes
            reason = Reason.FLOAT64 if "float64" in where else Reason.RUN
            raise Skipped(reason, f"{where}: {type(problem).__name__}: {str(problem)[:200]}") from problem


def _drawn(name: str, value: Any, recorder: InputRecorder) -> Drawn:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Drawn(name, (), "float32", "scalar", value=float(value))
    if not isinstance(value, torch.Tensor):
        raise Skipped(Reason.INPUT, f"`{name}` is a {type(value).__name__}, no tensor")
    dtype = dtype_name(value.dtype)
    if id(value) not in recorder.drawn:
        raise Skipped(Reason.INPUT, f"`{name}` is computed (`{recorder.last.get(id(value), 'unknown')}`), not drawn")
    how, bounds = recorder.drawn[id(value)]
    if not value.is_contiguous():
        raise Skipped(Reason.INPUT, f"`{name}` is not contiguous")
    if dtype == "bool":
        return Drawn(name, tuple(value.shape), dtype, "bernoulli")
    if how == "integers" and value.is_floating_point():
        raise Skipped(Reason.INPUT, f"`{name}` holds integers in {dtype}")
    if how != "integers" and dtype not in FLOATING:
        raise Skipped(Reason.INPUT, f"`{name}` is {dtype}")
    return Drawn(name, tuple(value.shape), dtype, how, bounds)


def _value(drawn: Drawn, generator: torch.Generator) -> Any:
    if drawn.value is not None:
        return drawn.value
    if drawn.how == "integers":
        dtype = getattr(torch, drawn.dtype)
        return torch.randint(drawn.bounds[0], max(drawn.bounds[1], drawn.bounds[0] + 1), drawn.shape, dtype=dtype)
    if drawn.how == "bernoulli":
        return torch.rand(drawn.shape, generator=generator) < 0.5
    return torch.randn(drawn.shape, generator=generator, dtype=torch.float64)


def _check_state(module: torch.nn.Module) -> None:
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                where = f"{name}.{attribute}" if name else attribute
                raise Skipped(Reason.STATE, f"`{where}` is a tensor, but neither a parameter nor a buffer")
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0:
            raise Skipped(Reason.RANDOM, f"dropout of {part.p} while it computes")
