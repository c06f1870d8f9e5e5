"""Tasks on disk: YAML read strictly into frozen dataclasses, with file, line and key in every error.

In: task folders (`task.yaml`, `seen.yaml`, `heldout.yaml`, references, kernels). Out: a `Task` (`definition.py`), and
the `Corpora` that commands select tasks from. `sampling.py` draws held-out cases. A new key of `task.yaml` needs
the schema in `arena/task/schemas`, a field of `Task`, and a line in docs/contribute/task-format.md.
"""
