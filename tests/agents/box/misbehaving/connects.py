# ruff: noqa
"""Tries to reach what it may not. Arguments: a TCP port of this machine's loopback address, and an abstract socket."""

import contextlib
import json
import os
import socket
import sys
import urllib.request

port, abstract = int(sys.argv[1]), sys.argv[2]
reached = []
addresses = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "192.0.2.1", "169.254.169.254", "10.0.0.1", "1.1.1.1"]
for address in addresses:
    for number in (port, 80):
        with contextlib.suppress(OSError), socket.create_connection((address, number), 2):
            reached.append(f"tcp {address}:{number}")
with contextlib.suppress(OSError), socket.create_connection(("::1", port), 2):
    reached.append("tcp6")
for address in addresses:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(0.5)
        one.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1", (address, 53))
        one.recv(512)
        reached.append(f"udp {address}")
for name in ("example.com", "localhost.localdomain", socket.gethostname()):
    with contextlib.suppress(OSError):
        found = {item[4][0] for item in socket.getaddrinfo(name, 80)} - {"127.0.0.1", "::1"}
        if found:
            reached.append(f"dns {name}")
with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
    one.connect("\0" + abstract)
    reached.append("abstract socket")
with contextlib.suppress(OSError):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    reached.append("raw socket")
if os.environ.get("HTTP_PROXY"):
    open_url = urllib.request.build_opener(urllib.request.ProxyHandler({"http": os.environ["HTTP_PROXY"]})).open
    for url in (
        f"http://127.0.0.1:{port}/",
        f"http://localhost:{port}/",
        f"http://[::1]:{port}/",
        "http://example.com/",
    ):
        with contextlib.suppress(OSError):
            open_url(url, timeout=5)
            reached.append(f"proxy {url}")
    proxy = os.environ["HTTP_PROXY"].rpartition(":")[2].strip("/")
    for target in (f"127.0.0.1:{port}", f"0x7f.1:{port}", f"127.1:{port}", "example.com:443", f"evil@127.0.0.1:{port}"):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(proxy)), 5) as one:
            one.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            if b" 200 " in one.recv(1024).split(b"\r\n")[0] + b" ":
                reached.append(f"tunnel {target}")
print(json.dumps({"reached": reached}), flush=True)
