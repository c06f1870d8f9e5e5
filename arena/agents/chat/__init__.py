"""A bare model as an agent: any endpoint that speaks OpenAI's chat completions, asked for a kernel file.

`agent.py` is the agent, `sampling.py` its conversations, `endpoint.py` one request. It runs no code, so that
it needs no sandbox.
"""

from __future__ import annotations
