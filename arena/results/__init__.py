"""The data model: frozen dataclasses and enums, no behaviour beyond what keeps them consistent.

Holds what is stored (`record.py`, `session.py`, `check.py`) and what is read from a task (`task.py`). Imports nothing
of the package. A field of a record keeps its name: runs that were recorded before must load.
"""
