"""`arena tasks check`: check task definitions, cases, kernels and mutants.

In: task folders. Out: a `TaskCheck` per task, kept so that a check can be resumed. `run.py` spreads tasks over judges,
`static.py` reads files only, `checker.py` and its neighbours run in the judge's process, `mutants/` derives
faulty kernels from a text. A new check needs a task that fails it (`tests/task_check`).
"""
