"""The proxy out of a box: exact pairs pass, everything else is refused and counted."""

from __future__ import annotations

import http.client
import http.server
import socket
from pathlib import Path

import pytest

from arena.agents.network import (
    MAX_REFUSED_KINDS,
    OTHERS,
    AllowListProxy,
    Endpoint,
    parse_endpoint,
    parse_request,
)
from arena.errors import InfrastructureError, UsageError
from tests.agents.loopback import Quiet, serving


class Echo(Quiet):
    """Answers with the request that arrived."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = f"{self.requestline}|{self.headers.get('Proxy-Authorization')}|{self.headers['X']}|".encode() + body
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def ask(path: Path, text: bytes) -> bytes:
    """Send bytes to the proxy and read until it hangs up."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(path))
        client.sendall(text)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := client.recv(65536):
            answer += chunk
        return answer


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("api.example.org:443", "api.example.org", 443),
        ("API.Example.ORG.:443", "api.example.org", 443),
        ("[::1]:80", "::1", 80),
        ("localhost:8123", "127.0.0.1", 8123),
    ],
)
def test_endpoints(text: str, host: str, port: int) -> None:
    assert parse_endpoint(text) == Endpoint(host, port)


@pytest.mark.parametrize(
    "text",
    ["host", ":443", "host:0", "host:65536", "host:x", "ho st:1", "host\n:1", "h" * 300 + ":1", "host:²", "a@b:1"],
)
def test_what_is_no_endpoint(text: str) -> None:
    with pytest.raises(UsageError, match="host:port"):
        parse_endpoint(text)


def test_a_plain_request_is_rewritten_for_its_server() -> None:
    request = parse_request(
        b"GET http://a.b/x?y=1 HTTP/1.1\r\nProxy-Authorization: z\r\nConnection: keep\r\nA: b\r\n\r\n"
    )
    assert request.endpoint == Endpoint("a.b", 80) and not request.tunnel
    assert request.first == b"GET /x?y=1 HTTP/1.1\r\nA: b\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET https://a.b/ HTTP/1.1\r\n\r\n", b"CONNECT a HTTP/1.1\r\n\r\n"],
)
def test_what_is_no_request(head: bytes) -> None:
    with pytest.raises(UsageError):
        parse_request(head)


def test_a_tunnel_to_what_is_allowed(tmp_path: Path) -> None:
    with serving(Echo) as port, AllowListProxy([f"127.0.0.1:{port}"], tmp_path / "sock") as proxy:
        sent = b"POST /p HTTP/1.0\r\nX: 1\r\nContent-Length: 3\r\n\r\nabc"
        answer = ask(tmp_path / "sock", f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode() + sent)
        assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"POST /p HTTP/1.0|None|1|abc")
        assert proxy.refused == {} and proxy.loopback_ports() == [port]


def test_a_plain_request_to_what_is_allowed_loses_what_is_for_the_proxy(tmp_path: Path) -> None:
    with serving(Echo) as port, AllowListProxy([f"localhost:{port}"], tmp_path / "sock"):
        head = f"POST http://localhost:{port}/p HTTP/1.1\r\nProxy-Authorization: s\r\nX: 1\r\nContent-Length: 3\r\n\r\n"
        assert ask(tmp_path / "sock", head.encode() + b"abc").endswith(b"POST /p HTTP/1.1|None|1|abc")


def test_large_bodies_pass_both_ways(tmp_path: Path) -> None:
    body = bytes(range(256)) * 20_000
    with serving(Echo) as port, AllowListProxy([f"127.0.0.1:{port}"], tmp_path / "sock"):
        head = f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nX: 1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        assert ask(tmp_path / "sock", head + body).endswith(body)


def test_everything_else_is_refused_and_counted(tmp_path: Path) -> None:
    with serving(Echo) as port, AllowListProxy([f"127.0.0.1:{port}"], tmp_path / "sock") as proxy:
        for target in (f"127.0.0.2:{port}", f"127.0.0.1:{port + 1}", "example.org:443", "EXAMPLE.org.:443"):
            answer = ask(tmp_path / "sock", f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 403 ")
        assert ask(tmp_path / "sock", b"GET http://example.org/ HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")
        assert ask(tmp_path / "sock", b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert proxy.refused == {
            f"127.0.0.2:{port}": 1,
            f"127.0.0.1:{port + 1}": 1,
            "example.org:443": 2,
            "example.org:80": 1,
        }


def test_what_is_counted_is_bounded(tmp_path: Path) -> None:
    with AllowListProxy(["a:1"], tmp_path / "sock") as proxy:
        for number in range(MAX_REFUSED_KINDS + 5):
            ask(tmp_path / "sock", f"CONNECT h{number}:1 HTTP/1.1\r\n\r\n".encode())
        assert len(proxy.refused) == MAX_REFUSED_KINDS + 1 and proxy.refused[OTHERS] == 5


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with AllowListProxy([f"127.0.0.1:{port}"], tmp_path / "sock"):
        assert b" 502 " in ask(tmp_path / "sock", f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())


def test_closing_hangs_up(tmp_path: Path) -> None:
    with serving(Echo) as port, socket.socket(socket.AF_UNIX) as client:
        with AllowListProxy([f"127.0.0.1:{port}"], tmp_path / "sock"):
            client.settimeout(60)
            client.connect(str(tmp_path / "sock"))
            client.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert client.recv(100) == b""


def test_a_path_that_no_socket_can_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="TMPDIR"):
        AllowListProxy([], tmp_path / ("x" * 120)).__enter__()


def test_an_http_client_gets_through_by_its_own_means(tmp_path: Path) -> None:
    """`http.client`'s own tunnel, through a TCP port as the relay offers it."""
    from arena.agents.inside import relay

    with serving(Echo) as port, socket.create_server(("127.0.0.1", 0)) as free:
        relay_port = free.getsockname()[1]
        free.close()
        with AllowListProxy([f"127.0.0.1:{port}"], tmp_path / "sock"):
            relay.listen(str(tmp_path / "sock"), relay_port, [])
            connection = http.client.HTTPConnection("127.0.0.1", relay_port, timeout=60)
            connection.set_tunnel("127.0.0.1", port)
            connection.request("POST", "/t", b"abc", {"X": "2"})
            assert connection.getresponse().read() == b"POST /t HTTP/1.1|None|2|abc"
            connection.close()
