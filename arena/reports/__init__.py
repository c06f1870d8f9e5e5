"""From records to numbers, tables, figures and pages. Never imports torch: a report is rebuilt on a laptop.

In: run folders, as `RunRecords`. Out: `index.html` with a page per task, CSV, JSON, Markdown and SVG, terminal tables.
Every table is made from the cells of `case_frame.py` and `tables.py`; `measures.py` lists every measure with its unit.
"""
