"""Kernels that others have published: judged as an ordinary run, beside what was claimed of them."""
