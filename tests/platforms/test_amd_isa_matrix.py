"""Matrix instructions: layouts as the ISA guide lists them, and products against a plain one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from arena.platforms.cpu.amd_isa.conversions import from_bfloat16, from_float8, to_bfloat16, to_float8
from arena.platforms.cpu.amd_isa.matrix import shape_of
from tests.platforms.amd_isa import step, waves

Array = Any
Place = Callable[[int, int, int], tuple[int, int]]
# (block, row, column) → (lane, register) of outputs, as the guide's tables have them.
OUTPUTS: dict[str, Place] = {
    "v_mfma_f32_32x32x8_f16": lambda b, i, j: (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)),
    "v_mfma_f32_32x32x8_bf16": lambda b, i, j: (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)),
    "v_mfma_f32_32x32x2_f32": lambda b, i, j: (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)),
    "v_mfma_f32_16x16x16_f16": lambda b, i, j: (j + 16 * (i // 4), i % 4),
    "v_mfma_f32_16x16x16_bf16": lambda b, i, j: (j + 16 * (i // 4), i % 4),
    "v_mfma_f32_16x16x4_f32": lambda b, i, j: (j + 16 * (i // 4), i % 4),
    "v_mfma_f32_16x16x32_fp8_fp8": lambda b, i, j: (j + 16 * (i // 4), i % 4),
    "v_mfma_f32_32x32x16_bf8_fp8": lambda b, i, j: (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)),
    "v_mfma_i32_32x32x16_i8": lambda b, i, j: (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)),
    "v_mfma_i32_16x16x32_i8": lambda b, i, j: (j + 16 * (i // 4), i % 4),
    "v_mfma_f32_32x32x1_2b_f32": lambda b, i, j: (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8) + 16 * b),
    "v_mfma_f32_16x16x4_4b_f16": lambda b, i, j: (j + 16 * (i // 4), i % 4 + 4 * b),
    "v_mfma_f32_4x4x4_16b_f16": lambda b, i, j: (j + 4 * b, i),
    "v_mfma_f32_32x32x16_f16": lambda b, i, j: (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)),
    "v_mfma_f32_16x16x32_bf16": lambda b, i, j: (j + 16 * (i // 4), i % 4),
}
# (block, row or column, k) → (lane, item) of inputs.
INPUTS: dict[str, Place] = {
    "v_mfma_f32_32x32x8_f16": lambda b, i, k: (i + 32 * (k // 4), k % 4),
    "v_mfma_f32_32x32x8_bf16": lambda b, i, k: (i + 32 * (k // 4), k % 4),
    "v_mfma_f32_32x32x2_f32": lambda b, i, k: (i + 32 * k, 0),
    "v_mfma_f32_16x16x16_f16": lambda b, i, k: (i + 16 * (k // 4), k % 4),
    "v_mfma_f32_16x16x16_bf16": lambda b, i, k: (i + 16 * (k // 4), k % 4),
    "v_mfma_f32_16x16x4_f32": lambda b, i, k: (i + 16 * k, 0),
    "v_mfma_f32_16x16x32_fp8_fp8": lambda b, i, k: (i + 16 * (k // 8), k % 8),
    "v_mfma_f32_32x32x16_bf8_fp8": lambda b, i, k: (i + 32 * (k // 8), k % 8),
    "v_mfma_i32_32x32x16_i8": lambda b, i, k: (i + 32 * (k // 8), k % 8),
    "v_mfma_i32_16x16x32_i8": lambda b, i, k: (i + 16 * (k // 8), k % 8),
    "v_mfma_f32_32x32x1_2b_f32": lambda b, i, k: (i + 32 * b, 0),
    "v_mfma_f32_16x16x4_4b_f16": lambda b, i, k: (i + 16 * b, k),
    "v_mfma_f32_4x4x4_16b_f16": lambda b, i, k: (i + 4 * b, k),
    "v_mfma_f32_32x32x16_f16": lambda b, i, k: (i + 32 * (k // 8), k % 8),
    "v_mfma_f32_16x16x32_bf16": lambda b, i, k: (i + 16 * (k // 8), k % 8),
}


def encode(values: Array, kind: str) -> Array:
    """Float values as items of a matrix, in unsigned integers of their size."""
    if kind == "bf16":
        return to_bfloat16(values)
    if kind in ("fp8", "bf8"):
        return to_float8(values, kind, "gfx942")
    dtype: Any = {"f32": np.float32, "f16": np.float16, "i8": np.int8}[kind]
    return values.astype(dtype).view(f"u{dtype().itemsize}")


def decode(items: Array, kind: str) -> Array:
    """The float64 values that the items stand for."""
    if kind == "bf16":
        return from_bfloat16(items).astype(np.float64)
    if kind in ("fp8", "bf8"):
        return from_float8(items, kind, "gfx942").astype(np.float64)
    dtype: Any = {"f32": np.float32, "f16": np.float16, "i8": np.int8}[kind]
    return items.view(dtype).astype(np.float64)


@pytest.mark.parametrize("name", OUTPUTS)
def test_products(name: str) -> None:
    shape, chance = shape_of(name), np.random.default_rng(1)
    scale = 20 if shape.to == "i32" else 1
    group, matrices = waves(2), []
    for number, kind in enumerate(shape.kinds):
        size = (2, shape.blocks, shape.m, shape.k)
        items = encode(np.rint(chance.normal(size=size) * 4 * scale) / (1 if shape.to == "i32" else 4), kind)
        matrices.append(decode(items, kind))
        words = np.zeros((2, 64, 16), np.uint32)
        held = words.view(items.dtype)
        for block, i, k in np.ndindex(shape.blocks, shape.m, shape.k):
            lane, item = INPUTS[name](block, i, k)
            held[:, lane, item] = items[:, block, i, k]
        group.v[64 + 16 * number : 80 + 16 * number] = np.moveaxis(words, -1, 0)
    addend = np.rint(chance.normal(size=(2, shape.blocks, shape.m, shape.n)) * 8)
    dtype: Any = np.int32 if shape.to == "i32" else np.float32
    registers = shape.m * shape.n * shape.blocks // 64
    for block, i, j in np.ndindex(shape.blocks, shape.m, shape.n):
        lane, register = OUTPUTS[name](block, i, j)
        group.v.view(dtype)[register, :, lane] = addend[:, block, i, j]
    item_words = shape.depth * encode(np.zeros(1), shape.kinds[0]).itemsize // 4
    a, b = f"a[0:{item_words - 1}]", f"a[16:{16 + item_words - 1}]"
    step(group, f"{name} v[0:{registers - 1}], {a}, {b}, v[0:{registers - 1}]")
    wanted = np.einsum("wbik,wbjk->wbij", *matrices) + addend
    for block, i, j in np.ndindex(shape.blocks, shape.m, shape.n):
        lane, register = OUTPUTS[name](block, i, j)
        assert np.allclose(group.v.view(dtype)[register, :, lane], wanted[:, block, i, j], rtol=1e-6), (block, i, j)


def test_matrix_instructions_ignore_exec_and_take_constants() -> None:
    group = waves()
    group.vf[64:66] = 1.0
    group.s[0, 126:128] = 0
    group.exec_changed()
    step(group, "v_mfma_f32_16x16x4_f32 v[0:3], a0, a1, 2.0")
    assert (group.vf[:4] == 6.0).all()


@pytest.mark.parametrize(("modifiers", "kinds"), [("", ("fp8", "fp8")), (" cbsz:1", ("bf8", "fp8"))])
def test_a_product_of_8_bit_floats_of_chosen_formats(modifiers: str, kinds: tuple[str, str]) -> None:
    group, chance = waves(), np.random.default_rng(3)
    octets = [chance.integers(0, 0x60, (32, 64)).astype(np.uint8) for _ in kinds]
    for number, matrix in enumerate(octets):
        lanes = np.concatenate([matrix[:, :32], matrix[:, 32:]])  # lane i + 32 * (k // 32) has k % 32
        group.v[64 + 8 * number : 72 + 8 * number, 0] = np.ascontiguousarray(lanes).view(np.uint32).T
    step(group, f"v_mfma_f32_32x32x64_f8f6f4 v[0:15], a[0:7], a[8:15], 0{modifiers}", "gfx950")
    a, b = (from_float8(x, kind, "gfx950").astype(np.float64) for x, kind in zip(octets, kinds, strict=True))
    for i, j in np.ndindex(32, 32):
        lane, register = OUTPUTS["v_mfma_f32_32x32x8_f16"](0, i, j)
        assert group.vf[register, 0, lane] == pytest.approx(a[i] @ b[j], rel=1e-6)


def test_a_float64_product() -> None:
    group, chance = waves(), np.random.default_rng(2)
    a, b = chance.normal(size=(16, 4)), chance.normal(size=(16, 4))
    for first, matrix in ((64, a), (66, b)):
        pairs = np.zeros((64, 2), np.uint32)
        for i, k in np.ndindex(16, 4):
            pairs[i + 16 * k] = np.array([matrix[i, k]]).view(np.uint32)
        group.v[first : first + 2, 0] = pairs.T
    step(group, "v_mfma_f64_16x16x4_f64 v[0:7], a[0:1], a[2:3], 0")
    for i, j in np.ndindex(16, 16):
        lane, register = j + 16 * (i % 4), 2 * (i // 4)
        found = np.array(group.v[register : register + 2, 0, lane]).view(np.float64)[0]
        assert found == pytest.approx(a[i] @ b[j])


@pytest.mark.parametrize(
    ("name", "arch", "torch_name"),
    [
        ("fp8", "gfx942", "float8_e4m3fnuz"),
        ("bf8", "gfx942", "float8_e5m2fnuz"),
        ("fp8", "gfx950", "float8_e4m3fn"),
        ("bf8", "gfx950", "float8_e5m2"),
    ],
)
def test_8_bit_floats_are_those_of_torch(name: str, arch: str, torch_name: str) -> None:
    import torch

    octets = np.arange(256, dtype=np.uint8)
    ours = from_float8(octets, name, arch)
    theirs = torch.from_numpy(octets).view(getattr(torch, torch_name)).float().numpy()
    assert np.array_equal(ours, theirs, equal_nan=True)
    finite = ours[np.isfinite(ours)]
    between = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, finite * np.float32(1.01)])
    between = between[np.abs(between) <= np.abs(finite).max()]
    rounded = torch.from_numpy(between).to(getattr(torch, torch_name)).view(torch.uint8).numpy()
    assert np.array_equal(to_float8(between, name, arch), rounded)
