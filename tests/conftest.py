"""What all tests share: the interpreter where there is no GPU, one warm judge, and the markers `gpu` and `slow`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import cache

import pytest

from arena.judge.process.client import JudgeClient

# The workers share the cores: threads of torch that are more than these spin in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# In the background of a shell Ctrl-C is ignored, and whatever a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


@cache
def has_gpu() -> bool:
    """Return whether PyTorch finds a GPU; importing it takes seconds."""
    import torch

    return torch.cuda.is_available()


def pytest_configure(config: pytest.Config) -> None:
    """Before Triton is imported; not in the process that only hands tests out to others."""
    hands_out = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if not hands_out and not has_gpu():
        os.environ["TRITON_INTERPRET"] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none; take `slow` from parameters that its `but` names."""
    skip = pytest.mark.skip(reason="needs a CUDA or ROCm device")
    for item in items:
        if "gpu" in item.keywords and not has_gpu():
            item.add_marker(skip)
        for marker in item.iter_markers("slow"):
            if any(text in item.name for text in marker.kwargs.get("but", ())):
                item.own_markers = [own for own in item.own_markers if own.name != "slow"]


@pytest.fixture(scope="session")
def cpu_judge() -> Iterator[JudgeClient]:
    """A warm judge for the CPU platform."""
    with JudgeClient("cpu") as judge:
        yield judge


@pytest.fixture(scope="session")
def gpu_judge() -> Iterator[JudgeClient]:
    """A warm judge for the GPU of this machine."""
    with JudgeClient("auto") as judge:
        yield judge
