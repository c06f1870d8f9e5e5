"""The untrusted process: loads one program, baseline or candidate, and runs the calls that the judge commands.

In: commands on a socket (`arena/processes/protocol.py`). Out: acknowledgements. The judge reads the output buffers.
`fork_server.py` is trusted and forks workers. Imports nothing of the judge, and knows nothing worth stealing.
"""
