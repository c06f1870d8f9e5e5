"""Does measuring work on this machine? Named items, each of which runs the real thing and can fail.

Nothing here runs a kernel in the calling process: what touches the device is a judge or a child, whose end is a failed
item and never the end of the test.
"""
