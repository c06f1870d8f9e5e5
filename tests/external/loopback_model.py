"""A model on the loopback address: streams OpenAI chat completions that call the tools it is given, by a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, Any]]
"""name of a tool (its end is enough) and arguments"""
Script = Callable[[list[dict[str, Any]]], Call | None]
"""from the messages so far to the next call; None: say that it is done"""


@contextmanager
def model(script: Script) -> Iterator[str]:
    """Serve the model, and yield its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chosen = script(asked["messages"])
            choices = _words() if chosen is None else _tool_call(chosen, asked["tools"])
            body = b"".join(_event(asked["model"], choice) for choice in choices) + b"data: [DONE]\n\n"
            if not asked.get("stream"):
                raise AssertionError("the client does not stream")
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _words() -> Iterator[dict[str, Any]]:
    yield {"delta": {"role": "assistant", "content": "Done."}, "finish_reason": None}
    yield {"delta": {}, "finish_reason": "stop"}


def _tool_call(call: Call, tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One call in three parts, as servers stream it."""
    (name,) = (tool["function"]["name"] for tool in tools if tool["function"]["name"].endswith(call[0]))
    text = json.dumps(call[1])
    head = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    yield {"delta": {"role": "assistant", "content": None, "tool_calls": [head]}, "finish_reason": None}
    for part in (text[:5], text[5:]):
        yield {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}, "finish_reason": None}
    yield {"delta": {}, "finish_reason": "tool_calls"}


def _event(name: str, choice: dict[str, Any]) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": name}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    data = {**chunk, "choices": [{"index": 0, **choice}], "usage": usage if choice["finish_reason"] else None}
    return f"data: {json.dumps(data)}\n\n".encode()
