"""Compilers and interpreters: from source text to something a host can load."""
