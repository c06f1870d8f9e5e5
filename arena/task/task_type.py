"""The types of tasks: what is given and what is asked for."""

from __future__ import annotations

from enum import StrEnum


class TaskType(StrEnum):
    """What is given and what is asked for."""

    HIP2HIP = "hip2hip"
    """A HIP kernel is given; a faster HIP kernel is asked for."""
    TRITON2TRITON = "triton2triton"
    """A Triton kernel is given; a faster Triton kernel is asked for."""
    TORCH2HIP = "torch2hip"
    """A PyTorch function is given; a HIP kernel is asked for."""
    TORCH2TRITON = "torch2triton"
    """A PyTorch function is given; a Triton kernel is asked for."""

    @property
    def triton(self) -> bool:
        """Return whether candidates are Triton kernels; else they are HIP kernels."""
        return self in (TaskType.TRITON2TRITON, TaskType.TORCH2TRITON)

    @property
    def from_pytorch(self) -> bool:
        """Return whether the baseline is the reference as PyTorch runs it; else it is a kernel of the task."""
        return self in (TaskType.TORCH2HIP, TaskType.TORCH2TRITON)

    @property
    def kernel_file(self) -> str:
        """The name of the file an agent hands in."""
        return "kernel.py" if self.triton else "kernel.hip"
