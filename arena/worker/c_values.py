"""Arguments as the C functions of HIP candidates take them."""

from __future__ import annotations

import ctypes
from typing import Any

from arena.processes.protocol import NullArgument, ScalarArgument, TensorArgument

_CTYPES: dict[str, Any] = {
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "bool": ctypes.c_bool,
}


def c_value(argument: TensorArgument | ScalarArgument | NullArgument, value: Any) -> Any:
    """Return a tensor's address, a scalar of its dtype, or a null pointer, as a ctypes value."""
    match argument:
        case TensorArgument():
            return ctypes.c_void_p(value.data_ptr())
        case ScalarArgument(dtype=dtype):
            return _CTYPES[dtype](value)
        case NullArgument():
            return ctypes.c_void_p(None)
