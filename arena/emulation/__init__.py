"""Emulations of GPUs on the CPU platform: `hip` (a runtime on fibers) and `triton` (Triton's interpreter).

In: the same kernels that GPUs run. Out: their results; times are those of an emulation. What a candidate can do here
must be what it can do on a GPU: a change needs the cheat fixtures (`tools/cheat_table.py --run`).
"""
