"""Inspect on served tasks with a scripted model, and what its log says; run by inspect.sh in Inspect's Python.

The model is mockllm with answers for each sample, or `openai-api/standin/NAME` at a loopback endpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

from arena import Client

TASKS = ("rms_norm", "add", "silu")
USAGE = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)


def next_call(messages: list[tuple[str, str]], kernels: dict[str, str]) -> tuple[str, dict[str, str]] | None:
    """Return the tool call that follows these messages, each (role, text); None: plain text.

    rms_norm: evaluate and finish; add: a wrong kernel, then the best one; silu: text alone, which never finishes.
    """
    asked = next(text for role, text in messages if role == "user")
    task = next(name for name in kernels if re.search(rf"^# {name}$", asked, re.MULTILINE))
    turn = sum(role == "assistant" for role, _ in messages)
    if task == "silu":
        return None
    broken = "def add(:\n" if task == "add" else kernels[task]
    return [("evaluate", {"kernel": broken}), ("evaluate", {"kernel": kernels[task]}), ("finish", {})][min(turn, 2)]


def mocked(kernels: dict[str, str]) -> Any:
    """A model in this process."""

    def answer(messages: list[ChatMessage], *_: object) -> ModelOutput:
        call = next_call([(one.role, one.text) for one in messages], kernels)
        if call is None:
            output = ModelOutput.from_content("mockllm", "I would rather not.")
        else:
            output = ModelOutput.for_tool_call("mockllm", call[0], call[1])
        output.usage = USAGE  # else a tokenizer is downloaded
        return output

    return get_model("mockllm/scripted", custom_outputs=answer)


@contextmanager
def loopback(kernels: dict[str, str]) -> Iterator[str]:
    """An OpenAI-compatible endpoint; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            call = next_call([(one["role"], str(one.get("content") or "")) for one in body["messages"]], kernels)
            message: dict[str, Any] = {"role": "assistant", "content": "I would rather not." if call is None else None}
            if call is not None:
                function = {"name": call[0], "arguments": json.dumps(call[1])}
                message["tool_calls"] = [{"id": f"call_{id(body)}", "type": "function", "function": function}]
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            data = json.dumps({**answer, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@contextmanager
def failing_judge() -> Iterator[str]:
    """A proxy of the server that gives no verdicts, as where the harness fails; yields its address."""
    server = os.environ["ARENA_URL"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/finish"):
                self.reply(503, b'{"error": "no verdict, and the episode goes on"}')
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            headers = {"Authorization": self.headers["Authorization"]}
            with urllib.request.urlopen(urllib.request.Request(server + self.path, body, headers)) as answer:
                self.reply(200, answer.read())

        do_POST = do_GET

        def reply(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # of a sample that was cancelled
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
        proxy.shutdown()


def check(location: str, agent: str) -> None:
    """Compare a log with what the judge answered."""
    read = read_eval_log(location)
    assert read.status == "success", read.error
    assert read.samples is not None and len(read.samples) == len(TASKS)
    values = {}
    for sample in read.samples:
        assert sample.error is None and sample.scores is not None
        score = sample.scores["verdict"]
        final = score.metadata["verdict"]
        name = str(sample.id).rpartition("/")[2]
        values[name] = score.value
        assert (score.value["reward"], score.value["bounded_reward"]) == (final["reward"], final["bounded_reward"])
        sys.stdout.write(f"{agent:20} {sample.id:40} {score.explanation:70} {json.dumps(score.value)}\n")
        if name != "silu":
            assert sample.store["arena_episode"] and [m.role for m in sample.messages].count("tool") == 3
            evaluated = [m.text for m in sample.messages if m.role == "tool"]
            assert "evaluations left" in evaluated[0] and (name != "add" or "compile" in evaluated[0].lower())
    assert values["rms_norm"]["solved"] == values["add"]["solved"] == 1 and values["rms_norm"]["speedup"] > 0.5
    assert values["silu"]["reward"] == -6 and values["silu"]["solved"] == values["silu"]["bounded_reward"] == 0
    assert read.results is not None
    found = {score.name: {name: one.value for name, one in score.metrics.items()} for score in read.results.scores}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    assert found["solved"]["mean"] == 2 / 3 and abs(found["speedup"]["arena/fast_p_0"] - 2 / 3) < 1e-9
    token = os.environ["ARENA_TOKEN"]
    assert token not in read.model_dump_json(), "a log holds no token"


def main(logs: Path) -> None:
    """Run a model in this process, one at an endpoint through the command, and a judge that gives no verdict."""
    with Client(os.environ["ARENA_URL"], os.environ["ARENA_TOKEN"]) as client:
        # An unchanged baseline counts as not handed in.
        kernels = {name: f"{client.task(name).kernel}\nCHANGED = True\n" for name in TASKS}
    options: dict[str, Any] = {"display": "none", "task_args": {"tasks": ",".join(TASKS)}, "message_limit": 12}
    (log,) = inspect_eval("arena/unseen_arena", model=mocked(kernels), log_dir=str(logs), **options)
    check(log.location, "mockllm")
    with loopback(kernels) as address:
        command = ["inspect", "eval", "arena/unseen_arena", "--model", "openai-api/standin/small", "--display", "none"]
        command += ["--model-base-url", address, "-T", f"tasks={','.join(TASKS)}", "--message-limit", "12"]
        environment = {**os.environ, "STANDIN_API_KEY": "none"}
        place = logs / "loopback"
        inspect = Path(sys.executable).parent / command[0]
        subprocess.run([inspect, *command[1:], "--log-dir", str(place)], env=environment, check=True)
    check(list_eval_logs(str(place))[0].name, "loopback")
    with failing_judge() as address:
        os.environ["ARENA_URL"] = address
        (log,) = inspect_eval("arena/unseen_arena", model=mocked(kernels), log_dir=str(logs / "failing"), **options)
    read = read_eval_log(log.location)
    assert read.status == "error" and read.error is not None and "503: no verdict" in read.error.message, read.error
    assert all(not sample.scores for sample in read.samples or ())
    sys.stdout.write(f"a judge without verdicts: {read.status}: {read.error.message}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
