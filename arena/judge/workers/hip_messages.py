"""The judge's messages as the HIP worker reads them: flat and little-endian, so that it needs no parser of JSON.

Mirrors `arena/platforms/toolchains/hip_worker/worker.hip`. The worker's answers are JSON, decoded as strictly as any
other's.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from arena.errors import InfrastructureError
from arena.processes.protocol import (
    Argument,
    Arrange,
    Bind,
    Call,
    CopyBack,
    CopyHalf,
    Linger,
    Load,
    LoadConstants,
    NullArgument,
    Pass,
    Prepare,
    ProfileRequest,
    Release,
    ReportKernels,
    ScalarArgument,
    TensorArgument,
    ToWorker,
)

_ADDRESS = "int64"
_FLOAT = struct.Struct("<f4x")
_INTEGERS = ("int64", "int32", "bool")


class Kind(IntEnum):
    """The first byte of a message."""

    LOAD = 1
    BIND = 2
    RELEASE = 3
    CALL = 4
    ARRANGE = 5
    PREPARE = 6
    PASS = 7
    FLUSH = 8
    REPORT = 9


class Passed(IntEnum):
    """The first byte of an argument."""

    TENSOR = 0
    INTEGER = 1
    FLOATING = 2
    ADDRESSES = 3


def encode(message: ToWorker) -> bytes:
    """Return the frame's body for a message. Raises `InfrastructureError` for one that no HIP worker understands."""
    match message:
        case Load(path=path, entry=entry):
            return _head(Kind.LOAD) + _text(path) + _text(entry)
        case Bind():
            return _bind(message)
        case Release():
            return _head(Kind.RELEASE)
        case Call(set=index, order=order):
            return _head(Kind.CALL) + struct.pack("<IQ", index, order)
        case Arrange(name=name, sets=sets, graph=graph):
            return _head(Kind.ARRANGE) + _text(name) + struct.pack(f"<BI{len(sets)}I", graph, len(sets), *sets)
        case Prepare():
            return _head(Kind.PREPARE)
        case Pass(name=name):
            return _head(Kind.PASS) + _text(name)
        case CopyBack(name=name):
            return _head(Kind.FLUSH) + _text(name)
        case ReportKernels():
            return _head(Kind.REPORT)
        case ProfileRequest() | LoadConstants() | CopyHalf() | Linger():
            raise InfrastructureError("a HIP worker has no profiler, modules or PyTorch: take a worker with Python")


def _bind(message: Bind) -> bytes:
    tensors = {each.name: each for each in message.arguments if isinstance(each, TensorArgument)}
    buffer = message.buffer
    parts = [
        _head(Kind.BIND),
        struct.pack("<Q", buffer.num_bytes),
        _bytes(bytes.fromhex(buffer.ipc)),
        struct.pack("<BI", buffer.lasting, message.sets),
        struct.pack("<I", len(message.arguments)),
        *(_argument(each, tensors) for each in message.arguments),
        struct.pack(f"<I{len(message.axes)}q", len(message.axes), *message.axes),
    ]
    return b"".join(parts)


def _argument(argument: Argument, tensors: dict[str, TensorArgument]) -> bytes:
    match argument:
        case TensorArgument(addresses_of=""):
            return struct.pack("<BQQ", Passed.TENSOR, argument.offset, argument.pitch)
        case TensorArgument():
            rows = tensors[argument.addresses_of]
            place = (argument.offset, argument.pitch, _span(argument), rows.offset, rows.pitch)
            return struct.pack("<B5Q", Passed.ADDRESSES, *place)
        case ScalarArgument(dtype="float32", value=value):
            return struct.pack("<B", Passed.FLOATING) + _FLOAT.pack(value)
        case ScalarArgument(dtype=dtype, value=value) if dtype in _INTEGERS:
            return struct.pack("<Bq", Passed.INTEGER, int(value))
        case ScalarArgument(dtype=dtype):
            raise InfrastructureError(f"a C function takes no scalar of type {dtype}; expected float32, {_INTEGERS}")
        case NullArgument():
            return struct.pack("<BQ", Passed.INTEGER, 0)


def _span(argument: TensorArgument) -> int:
    """Elements from the first to the last, gaps included."""
    if argument.dtype != _ADDRESS:
        raise InfrastructureError(f"addresses are {_ADDRESS}, `{argument.name}` is {argument.dtype}")
    if 0 in argument.shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(argument.shape, argument.strides, strict=True))


def _head(kind: Kind) -> bytes:
    return struct.pack("<B", kind)


def _text(text: str) -> bytes:
    return _bytes(text.encode("utf-8", "surrogateescape"))


def _bytes(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data
