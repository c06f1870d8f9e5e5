"""Serving engines' Triton kernels as candidates: taken from an installation at run time, and measured by the judge.

`arena yardstick` uses it. Nothing of an engine is part of the project, only adapters are.
"""
