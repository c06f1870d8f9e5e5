"""The public API, exported by `arena`: tasks, single evaluations, runs, reports and the agent protocol.

In: task ids, candidates as path, text or bytes, run configurations, run folders. Out: `Result` and `Run`, which print
themselves and give pandas frames. Names may be added; an exported name keeps its meaning within a major version.
"""
