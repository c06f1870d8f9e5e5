"""References in the arithmetic that a kernel may use: matrix products whose operands have fewer significant bits.

Matrix units multiply operands of 16 bits, or TF32, and add in float32, without rounding to nearest: what they lose
grows with the length of the sum. Elementwise operations, other sums and activations stay in float32. The judge derives
tolerances from it; `arena tasks check` also tries the next shorter format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SIGNIFICANT_BITS = {"float32": 24, "tf32": 11, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4}
"""by number format, the implied bit included (IEEE 754-2019; NVIDIA's TF32; OCP 8-bit floating point)"""
SHORTER = {"float32": "tf32", "tf32": "bfloat16", "float16": "bfloat16", "bfloat16": "float8_e4m3fn"}
"""the next format with fewer significant bits, by number format"""
_OPERANDS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "addmm": (1, 2),
    "addmv": (1, 2),
    "baddbmm": (1, 2),
    "convolution": (0, 1),
}
"""operators that multiply matrices, with the places of their operands; einsum, matmul and linear come down to these"""


@dataclass(frozen=True)
class Accumulation:
    """How a matrix unit adds up products: after `step` of them the sum is truncated to `significant_bits`.

    After `most` products, where that is a number, a kernel adds the sum to one in float32.
    """

    step: int
    significant_bits: int
    most: int | None = None

    def lost(self, length: int) -> float:
        """Return what a sum of `length` products has lost on average, relative to its size: half a unit a step."""
        steps = -(-min(length, self.most or length) // self.step)
        return steps * 2.0**-self.significant_bits

    def exact(self, first: torch.Tensor, last: torch.Tensor, product: torch.Tensor) -> bool:
        """Return whether nothing is lost: products of integers whose sum has no more than the significant bits."""
        if not product.numel() or float(product.abs().max()) >= 2.0**self.significant_bits:
            return not product.numel()
        return all(bool((part == part.round()).all()) for part in (first[:1], last[:1], first, last))


FLOAT32_SUMS = Accumulation(16, 24)
"""of operands of 16 bits and more (Fasi et al., 2021: tensor cores truncate); docs/develop/measurement.md"""
FLOAT8_SUMS = Accumulation(32, 14, 128)
"""of 8-bit floating-point operands on Hopper (DeepSeek-V3 Technical Report, 2024, section 3.3.2)"""


def rounded(values: torch.Tensor, number_format: str) -> torch.Tensor:
    """Return the values rounded to nearest, ties to even, to the significant bits of a format.

    The exponent keeps the range of float32: a kernel that overflows a shorter format has to scale. What would round to
    an infinity stays as it is.

    Args:
        values: A floating-point tensor.
        number_format: A name of `SIGNIFICANT_BITS`.

    Returns:
        A tensor of the same shape and dtype.
    """
    dropped = SIGNIFICANT_BITS["float32"] - SIGNIFICANT_BITS[number_format]
    single = values.to(torch.float32)
    if number_format == "bfloat16":  # the one that PyTorch has with the range of float32
        short = single.to(torch.bfloat16).to(torch.float32)
        single = torch.where(short.isfinite(), short, single)
    elif dropped:
        bits = single.contiguous().view(torch.int32)
        half = (1 << (dropped - 1)) - 1 + ((bits >> dropped) & 1)
        short = ((bits + half) >> dropped << dropped).view(torch.float32)
        single = torch.where(short.isfinite() & single.isfinite(), short, single)
    return single.to(values.dtype)


def truncated(product: torch.Tensor, lost: float, seed: int | None = None) -> torch.Tensor:
    """Return a product with every other result nearer to zero, by `2 * lost` times the root mean square of its row.

    What a sum loses differs from element to element, between nothing and twice the mean: were all to lose the same, a
    softmax would not see it. A result that is small because its terms cancel has lost as much as its neighbours.
    `seed`: each loses a share of its own, as sums in another order do.
    """
    size = product.square().mean(-1, keepdim=True).sqrt() if product.ndim else product.abs()
    places = torch.arange(product.shape[-1] if product.ndim else 1, device=product.device)
    shares = 2 * lost * (1 - places % 2 if seed is None else _chances(product, seed))
    return (product - product.sign() * shares * size).reshape(product.shape)


def _moved(values: torch.Tensor, number_format: str, seed: int) -> torch.Tensor:
    """Return the values, each moved by up to half a unit in the last place of a format; what it holds exactly stays.

    No kernel rounds what is exact: operands that come in the format, ones and zeros.
    """
    unit = torch.ldexp(torch.ones_like(values), torch.frexp(values).exponent - SIGNIFICANT_BITS[number_format])
    exact = rounded(values, number_format) == values
    return torch.where(exact, values, values + unit * (_chances(values, seed) - 0.5))


def _chances(values: torch.Tensor, seed: int) -> torch.Tensor:
    generator = torch.Generator(values.device).manual_seed(seed)
    return torch.rand(values.shape, dtype=values.dtype, device=values.device, generator=generator)


class UncompiledMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode whose operators nobody compiles: PyTorch's compiler, which takes seconds to import, is left alone."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class RoundedProducts(UncompiledMode):
    """Rounds the floating-point operands of every matrix product, and adds up as a matrix unit; `products` counts.

    `dither`: the seed by which operands are first moved, and so rounded as in some other kernel, and by which sums lose
    other shares; None: they are not.
    """

    def __init__(self, number_format: str, sums: Accumulation = FLOAT32_SUMS, dither: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._format, self._sums, self._dither = number_format, sums, dither
        self.products = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the operator; where it multiplies matrices, on rounded operands, and with what their sums lose."""
        name = func.overloadpacket.__name__
        places = _OPERANDS.get(name, ())
        if not places or not all(args[place].is_floating_point() for place in places):
            return func(*args, **(kwargs or {}))
        given = list(args)
        seed = None if self._dither is None else self._dither + 3 * self.products
        for operand, place in enumerate(places):
            if seed is not None:
                given[place] = _moved(given[place], self._format, seed + operand)
            given[place] = rounded(given[place], self._format)
        self.products += 1
        first, last = (given[place] for place in places)
        product = func(*given, **(kwargs or {}))
        if self._sums.exact(first, last, product):
            return product
        lost = self._sums.lost(last[0].numel() if name == "convolution" else first.shape[-1])
        return truncated(product, lost, None if seed is None else seed + len(places))


class RoundedResults(UncompiledMode):
    """Rounds the floating-point result of every operator: intermediate values that are kept in a shorter format."""

    def __init__(self, number_format: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._format = number_format

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the operator and round what it returns."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.is_floating_point() and not func._schema.is_mutable:
            return rounded(result, self._format)
        return result
