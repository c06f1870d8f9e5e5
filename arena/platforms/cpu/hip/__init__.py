"""HIP on the CPU: `toolchain.py` rewrites and builds a source for the runtime in `include/` and `runtime/`."""
