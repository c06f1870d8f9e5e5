"""AMD machine code on the CPU: code objects for gfx942 and gfx950, executed instruction by instruction in NumPy.

"ISA guide" in docstrings is AMD's "CDNA3 Instruction Set Architecture" reference guide. Nothing here decides a verdict:
the executor shows what a code object computes. See docs/develop/emulation.md.
"""
