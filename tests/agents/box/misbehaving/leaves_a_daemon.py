# ruff: noqa
"""Leaves a daemon (double fork, own session, no open file of ours) and ends with exit code 0."""

import os
import sys
import time

if os.fork():
    os.wait()
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.chdir("/")
for number in range(3):
    os.close(number)
while True:
    time.sleep(0.01)
