"""From records to numbers, tables, plots and pages. Never imports torch: a report is rebuilt on a laptop.

In: run folders, as `RunRecords`. Out: `index.html` with CSV, JSON and Markdown beside it, terminal tables, comparisons.
Every table is made from the cells of `case_frame.py` and `tables.py`; `measures.py` lists every measure with its unit.
"""
