"""Inputs, references and comparison: the same for every platform and every kernel language.

In: a case and a generator. Out: inputs (`fills.py`), float64 answers (`reference.py`) and errors in units of the
tolerance (`comparison.py`). Runs where torch is, in the judge and in tests; never beside a candidate.
"""
