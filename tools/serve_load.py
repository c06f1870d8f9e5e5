"""Measure what four honest clients of `arena serve` wait for while a fifth one does its worst.

    python tools/serve_load.py [--seconds 30] [--judged-ms 50]

The judge is simulated and takes the same time for everything, so that what is seen is the server's own. The server, the
honest and the hostile clients are a process each. Prints latencies of evaluations, with and without the hostile client,
and what it was answered.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from arena import Client
from arena.errors import NotServed
from arena.runs.serve.clients import ClientAccount as Known
from arena.runs.serve.routes import EpisodeServer
from tests.runs.serve.serving import Judge, served

HONEST = [Known(f"honest-{number}", f"honest-{number}".ljust(16, ".")) for number in range(4)]
HOSTILE = Known("hostile", "h" * 16, agent_token="g" * 16, agent_episodes=4, kernel_bytes=8 << 20)
_KERNEL = "#" * (1 << 19) + "\nfast"


Attack = Callable[[int, Counter[str], threading.Event], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="of each part")
    parser.add_argument("--judged-ms", type=float, default=50.0, help="what the simulated judge takes")
    parser.add_argument("--serve", action="store_true", help="be the server")
    parser.add_argument("--attack", type=int, metavar="PORT", help="be the hostile client of this server")
    given = parser.parse_args()
    if given.serve:
        _serve(given.judged_ms / 1e3)
    elif given.attack:
        _attack(given.attack, given.seconds)
    else:
        _report(given.seconds, given.judged_ms)


def _report(seconds: float, judged_ms: float) -> None:
    alone, _ = measured(seconds, judged_ms, hostile=False)
    contended, answers = measured(seconds, judged_ms, hostile=True)
    for name, found in (("alone", alone), ("beside a hostile client", contended)):
        print(f"{name:24} {described(found)}")
    print(f"p95, beside / alone      {p95(contended) / p95(alone):.2f}")
    print(f"the hostile client got   {answers}")


def _serve(judged_s: float) -> None:
    """Listen until standard input ends."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(
            Path(folder),
            Judge(lambda: time.sleep(judged_s)),
            evaluations=10**6,
            capacity=256,
            clients=[*HONEST, HOSTILE],
        ) as (episodes, _),
        EpisodeServer(episodes) as server,
    ):
        print(server.address, flush=True)
        sys.stdin.read()


@contextmanager
def _started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Start this program as something else, and end it."""
    command = [sys.executable, __file__, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def measured(seconds: float, judged_ms: float, *, hostile: bool) -> tuple[list[float], str]:
    """Return the honest clients' latencies, and how often the hostile one was answered with which status."""
    latencies: list[float] = []
    over = threading.Event()
    with _started("--serve", "--judged-ms", str(judged_ms)) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        threads = [threading.Thread(target=_honest, args=(address, one, latencies, over)) for one in HONEST]
        for thread in threads:
            thread.start()
        answers = ""
        if hostile:
            port = address.rsplit(":", 1)[1]
            with _started("--attack", port, "--seconds", str(seconds)) as attacker:
                answers = attacker.communicate()[0].strip()
        else:
            time.sleep(seconds)
        over.set()
        for thread in threads:
            thread.join()
    return latencies, answers


def _honest(address: str, known: Known, latencies: list[float], over: threading.Event) -> None:
    with Client(address, known.token) as client:
        episode = client.begin("scale").episode
        while not over.is_set():
            started = time.perf_counter()
            client.evaluate(episode, "fast")
            latencies.append(time.perf_counter() - started)


def _attack(port: int, seconds: float) -> None:
    """Attack in every way at once, and print what was answered."""
    answers: Counter[str] = Counter()
    over = threading.Event()
    for attack in ATTACKS:
        threading.Thread(target=_again, args=(attack, port, answers, over), daemon=True).start()
    over.wait(seconds)
    print(json.dumps(dict(sorted(answers.items()))), flush=True)


def _again(attack: Attack, port: int, answers: Counter[str], over: threading.Event) -> None:
    """Begin an attack once more where it was refused."""
    while not over.is_set():
        try:
            attack(port, answers, over)
        except (OSError, KeyError, NotServed) as problem:
            answers[type(problem).__name__] += 1
            over.wait(0.05)


def described(found: Sequence[float]) -> str:
    return f"{len(found)} evaluations, median {1e3 * median(found):.0f} ms, p95 {1e3 * p95(found):.0f} ms"


def p95(found: Sequence[float]) -> float:
    return quantiles(found, n=20)[-1]


def _asked(port: int, answers: Counter[str], path: str, body: object, token: str = HOSTILE.token) -> dict[str, str]:
    """Ask as the hostile client, and count the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answers[str(answer.status)] += 1
        return dict(json.loads(answer.read()))
    finally:
        connection.close()


def _floods_one_episode(port: int, answers: Counter[str], over: threading.Event) -> None:
    """256 requests at once for one episode, whose connections are closed before an answer."""
    episode = _asked(port, answers, "/episodes", {"task": "scale", "seed": 1})["episode"]
    body = json.dumps({"kernel": "fast"})
    head = f"POST /episodes/{episode}/evaluate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    head += f"Authorization: Bearer {HOSTILE.token}\r\n\r\n"
    while not over.is_set():
        open_ones = []
        with suppress(OSError):
            for _ in range(256):
                open_ones.append(socket.create_connection(("127.0.0.1", port), timeout=60))
                open_ones[-1].sendall((head + body).encode())
        for one in open_ones:
            one.close()
        over.wait(0.2)


def _begins_as_an_agent(port: int, answers: Counter[str], over: threading.Event) -> None:
    while not over.is_set():
        _asked(port, answers, "/episodes", {"task": "scale"}, str(HOSTILE.agent_token))
        over.wait(0.02)


def _sends_large_kernels(port: int, answers: Counter[str], over: threading.Event) -> None:
    episode = _asked(port, answers, "/episodes", {"task": "scale", "seed": 2})["episode"]
    while not over.is_set():
        _asked(port, answers, f"/episodes/{episode}/evaluate", {"kernel": _KERNEL})


def _fills_places(port: int, answers: Counter[str], over: threading.Event) -> None:
    with Client(f"http://127.0.0.1:{port}", HOSTILE.token) as client:
        names = [client.begin("scale_too").episode for _ in range(48)]
        while not over.is_set():
            with suppress(NotServed):
                answers.update(f"item {answer.status}" for answer in client.batch([(name, "fast") for name in names]))


def _holds_connections(port: int, answers: Counter[str], over: threading.Event) -> None:
    """1,100 connections with a head and no body."""
    head = f"POST /episodes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {HOSTILE.token}\r\nContent-Length: 9\r\n\r\n"
    while not over.is_set():
        open_ones = []
        with suppress(OSError):
            for _ in range(1100):
                open_ones.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                open_ones[-1].sendall(head.encode())
        over.wait(1.0)
        for one in open_ones:
            one.close()


ATTACKS = (_floods_one_episode, _begins_as_an_agent, _sends_large_kernels, _fills_places, _holds_connections)

if __name__ == "__main__":
    main()
