"""Measure how well AI coding agents optimise GPU kernels, and whether their kernels generalize."""

__version__ = "0.1.0"
