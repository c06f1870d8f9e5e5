"""The runner's side of an agent's work: the judge pool, evaluations with a budget, workspaces, episodes.

In: kernels from untrusted peers, by the socket of `./evaluate` or by HTTP (`arena serve`). Out: feedback on seen cases,
and in the end the kernel that counts. Nothing about held-out cases may leave here (`content.py`, `feedback.py`).
"""
