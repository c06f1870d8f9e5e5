"""A small engine on disk, and an adapter for `rms_norm`, written for these tests."""

from __future__ import annotations

from pathlib import Path

KERNEL = """
import torch
from vllm.platforms import current_platform
from vllm.tools import WIDTH, rounded
from vllm.triton import tl, triton

SMALL: int = 2 * WIDTH


@triton.jit
def norm_kernel(x, weight, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(value * value) / columns + eps)
    factor = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * columns + column, value * scale * factor, mask=inside)


@torch.compile
def rms_norm(x: torch.Tensor, weight: "Tensor", eps: Missing, y) -> Missing:
    from vllm.tools import checked

    assert checked(x) and current_platform.is_cuda()
    block: Missing = rounded(max(x.shape[1], SMALL))
    norm_kernel[(x.shape[0],)](x, weight, y, x.shape[1], eps, BLOCK=block)


def unused():
    return nowhere
"""
TOOLS = """
WIDTH = 8


def rounded(n):
    return 1 << (n - 1).bit_length()


def checked(x):
    return helper(x)


def helper(x):
    return x.is_contiguous()
"""
TRITON = "if True:\n    import triton\n    import triton.language as tl\nelse:\n    triton = tl = None\n"
ADAPTER = '''"""The engine's norm."""

from vllm.kernels import rms_norm as engine_norm


class current_platform:
    @staticmethod
    def is_cuda():
        return True


def rms_norm(x, weight, eps, y):
    engine_norm(x, weight, eps, y)
'''


def write_engine(root: Path) -> Path:
    """Write the engine below a folder, and return the folder."""
    package = root / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('an engine is never imported')\n", encoding="utf-8")
    for name, text in (("kernels", KERNEL), ("tools", TOOLS), ("triton", TRITON), ("platforms", "import none\n")):
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    return root


def write_adapter(root: Path, text: str = ADAPTER) -> Path:
    """Write the adapter of `rms_norm` below a folder of adapters, and return its file."""
    path = root / "vllm" / "normalization" / "rms_norm.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
