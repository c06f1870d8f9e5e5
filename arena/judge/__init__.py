"""The trusted side: secret seeds, references, tolerances, and the clock that counts. Never loads candidate code.

In: a task, a candidate file and `Options` (`messages.py`). Out: an `Evaluation` with the verdict of every stage.
`evaluate.py` reads top to bottom: compile, correctness, performance, held-out. `client.py` is what the rest of the
package uses; it imports no torch. A change here needs the cheat fixtures, the faults, and A/A on a GPU.
"""
