"""Copied into containers: standard library only, Python 3.9 and later."""
