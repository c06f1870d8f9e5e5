# ruff: noqa
"""Ignores every signal that can be ignored, and keeps two processes busy for ever."""

import os
import signal

for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
os.fork()
os.write(1, b"busy\n")
while True:
    pass
