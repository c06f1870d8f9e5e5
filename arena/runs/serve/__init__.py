"""`arena serve`: many episodes on many tasks over HTTP, for training loops. docs/evaluate/serve.md.

In: kernels from untrusted clients (`routes.py`). Out: rewards and feedback on seen cases, a final verdict in which
held-out cases are only counted, and a run folder that `arena report` reads. An episode is on disk after every call
(`journal.py`), so that a server that was killed goes on with all of them.
"""
