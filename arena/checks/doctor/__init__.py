"""Tests of an installation, for `arena doctor`: what a machine has, whether evaluation works, how far timings are off.

`inventory.py` lists what is installed. `quick.py` runs named items that each execute the real thing and can fail, in
child processes and a judge. `timing.py` measures the timing error. `full.py` runs every step that a claim about a GPU
rests on. A new item needs a test that shows it failing (`tests/doctor`).
"""
