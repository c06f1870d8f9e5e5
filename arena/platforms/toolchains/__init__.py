"""HIP compilers for the device at hand (hipcc, nvcc), what a built object may contain, and the native worker's source.

In: a source and a target. Out: a shared object in the build cache, or the compiler's errors. `hip_symbols.py` and
`hip_reads.py` refuse what a kernel has no use for. The CPU platform's toolchain is in `arena.platforms.cpu`, builds for
absent GPUs in `arena.platforms.cross`.
"""
