"""A box with a network: what is allowed is reached from inside, by a proxy's means and on the loopback address."""

from __future__ import annotations

from arena.agents.box import BoxPlan
from tests.agents.box import boxes
from tests.agents.loopback import Quiet, serving

CLIENT = """
import sys, urllib.request
for url in sys.argv[1:]:
    print(urllib.request.urlopen(url, timeout=10).read().decode())
"""
THROUGH_THE_PROXY = """
import os, sys, urllib.request
handler = urllib.request.ProxyHandler({"http": os.environ["http_proxy"]})
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
print(urllib.request.build_opener(handler).open(sys.argv[1], timeout=10).read().decode())
"""


class Hello(Quiet):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"hello {self.path}".encode())


def test_an_allowed_loopback_port_is_the_one_outside(kind: str, plan: BoxPlan) -> None:
    with serving(Hello) as port, boxes.make(kind, boxes.with_network(plan, f"127.0.0.1:{port}")) as box:
        urls = [f"http://127.0.0.1:{port}/1", f"http://localhost:{port}/2"]
        outcome = boxes.finish(box.start([boxes.python(kind), "-I", "-c", CLIENT, *urls]))
        assert outcome.stdout == "hello /1\nhello /2\n", outcome.stderr
        assert box.refused == {} and "network=allow-list" in box.isolation


def test_what_is_allowed_is_reached_through_the_proxy(kind: str, plan: BoxPlan) -> None:
    with serving(Hello) as port, boxes.make(kind, boxes.with_network(plan, f"127.0.0.1:{port}")) as box:
        url = f"http://127.0.0.1:{port}/3"
        outcome = boxes.finish(box.start([boxes.python(kind), "-I", "-c", THROUGH_THE_PROXY, url]))
        assert outcome.stdout == "hello /3\n", outcome.stderr


def test_exit_codes_and_input_pass_the_relay(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, boxes.with_network(plan, "192.0.2.1:443")) as box:
        outcome = boxes.finish(box.start(["sh", "-c", "cat; exit 5"], b"input"))
        assert (outcome.code, outcome.stdout) == (5, "input")
        assert boxes.finish(box.start(["sh", "-c", "kill -TERM $$"])).code == 128 + 15


def test_a_command_that_is_ended_takes_the_relay_with_it(kind: str, plan: BoxPlan) -> None:
    with boxes.make(kind, boxes.with_network(plan, "192.0.2.1:443")) as box:
        boxed = box.start(["sleep", "60"])
        boxed.kill()
        assert boxed.poll() not in (None, 0)


def test_without_a_network_the_loopback_address_is_the_boxs_own(kind: str, plan: BoxPlan) -> None:
    script = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b"own")
print(client.recv(3).decode())
"""
    assert boxes.run(kind, plan, [boxes.python(kind), "-I", "-c", script]).stdout == "own\n"
