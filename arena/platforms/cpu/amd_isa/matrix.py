"""Matrix operations (MFMA): layouts of the operands over lanes and registers, and the product.

ISA guide: "Matrix Arithmetic Instructions" and its element layouts. A product is
summed in float64 and rounded once: hardware rounds in an order of its own, which differs by rounding only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.conversions import from_bfloat16, from_float8
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.operands import constant, registers
from arena.platforms.cpu.amd_isa.valu import Kernel, Step
from arena.platforms.cpu.amd_isa.waves import LANES, Waves

Array = Any
_NAME = re.compile(
    r"^v_mfma_(?P<to>f32|f64|i32)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:(?P<blocks>\d+)b_)?"
    r"(?P<kind>f32|f64|f16|bf16|i8|xf32|f8f6f4|(?:fp8|bf8)_(?:fp8|bf8))(?P<one_k>_?1k)?$"
)
_ITEM_BYTES = {"f32": 4, "xf32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "fp8": 1, "bf8": 1}


@dataclass(frozen=True)
class Shape:
    """Sizes of a matrix operation: `blocks` products of m × k by k × n."""

    m: int
    n: int
    k: int
    blocks: int
    kinds: tuple[str, str]
    to: str

    @property
    def depth(self) -> int:
        """Items of k that a lane holds of each input."""
        return self.m * self.k * self.blocks // LANES

    def input_places(self) -> tuple[Array, Array]:
        """Lane and item of element (block, row or column, k) of an input."""
        block, i, k = np.indices((self.blocks, self.m, self.k))
        return i + self.m * (block + self.blocks * (k // self.depth)), k % self.depth

    def output_places(self) -> tuple[Array, Array]:
        """Lane and register of element (block, i, j) of the output: groups of 4 rows, 1 of float64."""
        block, i, j = np.indices((self.blocks, self.m, self.n))
        rows = 1 if self.to == "f64" else 4
        if self.m == 4:
            if self.to == "f64":
                return j + self.n * (block + self.blocks * i), np.zeros_like(i)
            return j + self.n * block, i
        across = LANES // self.n
        item = i % rows + rows * (i // (rows * across)) + self.m // across * block
        return j + self.n * (i // rows % across), item


def shape_of(name: str) -> Shape:
    """Return the sizes that a mnemonic stands for. Raises `NotModelled` for any other name."""
    found = _NAME.match(name)
    if found is None:
        raise NotModelled(f"matrix instruction {name}")
    m, n, k, kind = int(found["m"]), int(found["n"]), int(found["k"]), found["kind"]
    pair = tuple(kind.split("_")) if "_" in kind else (kind, kind)
    blocks = int(found["blocks"] or 0) or _blocks(m, k, kind)
    return Shape(m, n, k, blocks, (pair[0], pair[1]), found["to"])


def _blocks(m: int, k: int, kind: str) -> int:
    """Return how many blocks fill the lanes: those of the shapes whose k is too small for one."""
    least_depth = {"f32": 1, "f64": 1, "f16": 4, "bf16": 4, "i8": 4}.get(kind, 1)
    return max(1, LANES * least_depth // (m * k))


def _compile(ins: Instruction, kernel: Kernel) -> Step:
    shape = shape_of(ins.name)
    formats = ("cbsz", "blgp") if shape.kinds[0] == "f8f6f4" else ()
    if formats:
        shape = replace(shape, kinds=(_chosen_format(ins, "cbsz"), _chosen_format(ins, "blgp")))
    broken = [key for key in ins.modifiers if ins.modifiers[key] != "0" and key not in formats]
    if broken:
        raise NotModelled(f"modifier {broken[0]} of a matrix instruction: {ins.text}")
    a, b = (_input(ins.operands[1 + n], shape, n, kernel) for n in (0, 1))
    addend = _addend(ins.operands[3], shape, kernel)
    lane, item = shape.output_places()
    destination = registers(ins.operands[0], kernel.accumulators)
    if destination is None:
        raise NotModelled(ins.text)
    first, words = destination.first, 2 if shape.to == "f64" else 1
    dtype: Any = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[shape.to]

    def step(g: Waves) -> None:
        product = np.matmul(a(g), np.swapaxes(b(g), -1, -2)) + addend(g)  # [waves, blocks, m, n]
        if shape.to == "i32":
            product = product.astype(np.int64).astype(np.int32)
        raw = product.astype(dtype)
        bits = raw.view(np.uint32).reshape(*raw.shape, words)
        for word in range(words):
            g.v[first + words * item + word, :, lane] = np.moveaxis(bits[..., word], 0, -1)

    return step


def _chosen_format(ins: Instruction, modifier: str) -> str:
    """Return the format of an input of F8F6F4 (gfx950); those of 6 and 4 bits are not modelled.

    Both inputs have k in the same order, whichever it is: the order does not matter for the product.
    """
    number = ins.number(modifier)
    if number > 1:
        raise NotModelled(f"matrix format {modifier}:{number}: {ins.text}")
    return ("fp8", "bf8")[number]


def _input(text: str, shape: Shape, number: int, kernel: Kernel) -> Callable[[Waves], Array]:
    """Return a reader of float64 [waves, blocks, m, k]."""
    found = registers(text, kernel.accumulators)
    kind = shape.kinds[number]
    size = _ITEM_BYTES[kind]
    if found is None or found.file != "v" or found.count * 4 != shape.depth * size:
        raise NotModelled(f"matrix operand {text} of {shape}")
    lane, item = shape.input_places()
    first, count = found.first, found.count

    def read(g: Waves) -> Array:
        words = np.ascontiguousarray(np.moveaxis(g.v[first : first + count], 0, -1))  # [waves, lanes, words]
        return _values(words, kind, kernel.arch)[:, lane, item]

    return read


def _values(words: Array, kind: str, arch: str) -> Array:
    if kind == "bf16":
        return from_bfloat16(words.view(np.uint16)).astype(np.float64)
    if kind in ("fp8", "bf8"):
        return from_float8(words.view(np.uint8), kind, arch).astype(np.float64)
    if kind == "xf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    dtype: Any = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8}[kind]
    return words.view(dtype).astype(np.float64)


def _addend(text: str, shape: Shape, kernel: Kernel) -> Callable[[Waves], Array]:
    found = registers(text, kernel.accumulators)
    if found is None:
        value = np.float64(constant(text, shape.to))
        return lambda g: value
    lane, item = shape.output_places()
    first = found.first
    dtype: Any = {"f32": np.float32, "i32": np.int32, "f64": np.float64}[shape.to]
    if shape.to != "f64":
        return lambda g: np.moveaxis(g.v.view(dtype)[first + item, :, lane], -1, 0).astype(np.float64)

    def read(g: Waves) -> Array:
        low, high = (g.v[first + 2 * item + word, :, lane] for word in (0, 1))
        return np.moveaxis(np.stack([low, high], axis=-1).view(dtype)[..., 0], -1, 0)

    return read


def builder(name: str) -> Callable[[Instruction, Kernel], Step] | None:
    """Return how matrix instructions are compiled; None for any other mnemonic."""
    return _compile if name.startswith("v_mfma_") else None
