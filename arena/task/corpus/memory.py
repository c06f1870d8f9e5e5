"""Check that strides, offsets and views of a case fit together in memory. Used by the loader."""

from __future__ import annotations

from arena.task.definition import Arguments, Tensor


def memory_problem(arguments: Arguments) -> str:
    """Return what is wrong with where the tensors of a case lie, or an empty string.

    Elements of a tensor have addresses of their own, but those that a stride of 0 repeats in an input. A view lies in
    the memory of its base, which has no gaps.
    """
    for tensor in (*arguments.inputs, *arguments.outputs):
        negative = [value for value in (*tensor.strides, tensor.offset) if value < 0]
        if negative:
            return f"a stride or the offset of {tensor.name} is {negative[0]}; expected 0 or more"
        written = tensor.spec.mutable or tensor in arguments.outputs
        if _overlaps(tensor, repeats=not written):
            return f"elements of {tensor.name} overlap: shape {list(tensor.shape)}, strides {list(tensor.strides)}"
        problem = _view_problem(tensor, arguments) if tensor.base else ""
        if problem:
            return f"{tensor.name} is no view of {tensor.base}, which {problem}"
    return ""


def _overlaps(tensor: Tensor, *, repeats: bool) -> bool:
    """Return whether two elements share an address, other than by a stride of 0 where it `repeats`."""
    reach = 0
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if size <= 1 or (repeats and stride == 0):
            continue
        if stride <= reach:
            return tensor.numel > 0
        reach += (size - 1) * stride
    return False


def _view_problem(tensor: Tensor, arguments: Arguments) -> str:
    base = arguments.tensors[tensor.base]
    if base is None:
        return "the case leaves out"
    if base.numel != base.span:
        return "has gaps"
    end = tensor.offset + tensor.span
    return f"has {base.span} elements; the view ends after {end}" if end > base.span else ""
