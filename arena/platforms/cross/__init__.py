"""Compilation for GPUs that this machine lacks: HIP with clang and nvcc, Triton with its own compilers.

In: sources and a target such as `gfx942` or `sm_90`. Out: code objects and what each kernel uses of the device. Nothing
here runs a kernel. The judge (`judge/cross_compile.py`) and `arena doctor` use it.
"""
