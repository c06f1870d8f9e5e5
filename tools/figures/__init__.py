"""Modules of `tools/claims.py` and `tools/throughput.py`: kept records, and what is made of them."""
