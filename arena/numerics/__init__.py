"""Inputs, references and comparison: what is the same for every platform and every kernel language."""
