"""Scores: the outcome of a trial, its gain, the order of agents, rewards, and the scales of other benchmarks.

The run log, reports, boards, comparisons, exports, the API, adapters and rewards all call this room, so that two pages
cannot disagree. First file to read: `outcome.py`.
"""
