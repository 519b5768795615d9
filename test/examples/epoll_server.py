#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""examples/epoll_server with clients that read late, end their lines in the
middle of a segment, or are more than it has descriptors.

usage: epoll_server.py PROGRAM"""
import contextlib
import pathlib
import resource
import socket
import subprocess
import sys
import time

DESCRIPTORS = 16
TRIES = 2000  # of 10 ms


@contextlib.contextmanager
def server(program):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    limit = (DESCRIPTORS, DESCRIPTORS)
    process = subprocess.Popen(
        [program, "--listen", str(port)], stdout=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
    try:
        for _ in range(TRIES):
            with contextlib.suppress(ConnectionRefusedError):
                connect(port).close()
                break
            time.sleep(0.01)
        yield process, port
    finally:
        process.kill()
        process.wait()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def receive(client, size):
    heard = b""
    while len(heard) < size:
        more = client.recv(size - len(heard))
        if not more:
            break
        heard += more
    return heard


def test_late_reader(_, port):
    text = b"".join(b"line %d\n" % i for i in range(1000000))
    client = connect(port)
    client.setblocking(False)
    sent = 0
    waits = 0
    while sent < len(text) and waits < 5:  # until nobody takes more
        try:
            sent += client.send(text[sent:])
            waits = 0
        except BlockingIOError:
            waits += 1
            time.sleep(0.01)
    client.settimeout(30)
    assert receive(client, sent) == text[:sent], "the echo has lost something"


def ends_its_lines(port):
    """Whether a client that never pauses at the end of a line is served."""
    with connect(port) as client:
        heard = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(25):
                client.sendall(b"end\nbegin")
                heard += receive(client, 9)
                time.sleep(0.1)
        return heard == 25 * b"end\nbegin"


def test_lines(_, port):
    # On a machine that stands still for as long as a line may take, again.
    assert any(ends_its_lines(port) for _ in range(3)), "it was closed"


def sleeps(process):
    """Whether it sleeps for a while, as one that spins never does."""
    stat = pathlib.Path(f"/proc/{process.pid}/stat")
    asleep = 0
    for _ in range(TRIES):
        state = stat.read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        if asleep == 5:
            return True
        time.sleep(0.01)
    return False


def test_descriptors(process, port):
    clients = [connect(port) for _ in range(2 * DESCRIPTORS)]
    clients[0].sendall(b"hello\n")
    assert receive(clients[0], 6) == b"hello\n"
    assert sleeps(process), "it spins while it has no descriptor left"
    last = clients.pop()
    for client in clients:
        client.close()
    last.sendall(b"hello\n")
    assert receive(last, 6) == b"hello\n", "it accepts no more"


def main():
    for test in (test_late_reader, test_lines, test_descriptors):
        with server(sys.argv[1]) as (process, port):
            test(process, port)
        print("ok", test.__name__)


main()
