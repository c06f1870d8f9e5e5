"""The untrusted process: loads one program, baseline or candidate, and runs the calls that the judge commands.

In: commands on a socket (`arena/protocol.py`). Out: acknowledgements; the judge reads the output buffers itself.
`fork_server.py` is trusted and forks workers. Imports nothing of the judge, and knows nothing worth stealing.
"""
