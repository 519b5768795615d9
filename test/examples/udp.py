#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""examples/udp with datagrams of somebody else, that are there before it has
met its peer, and with losses in windows of several sizes.

usage: udp.py PROGRAM"""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

TRIES = 2000  # of 10 ms
MAGIC = 0x6C61776E
DATA, FIN, ACK, PROBE = 1, 2, 3, 4
NO_MESSAGE = 2**64 - 1


def datagram(kind, number):
    return struct.pack("!IIQQ", MAGIC, kind, number, 0)


def receive(client):
    _, kind, number, _ = struct.unpack("!IIQQ", client.recv(100))
    return kind, number


def check_strangers(program):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        at = free.getsockname()
    server = subprocess.Popen([program, "--listen", str(at[1])])
    peer, stranger = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                      for _ in range(2))
    try:
        peer.settimeout(0.05)
        peer.connect(at)
        stranger.connect(at)
        # Without the magic number, it is ignored, but not refused.
        for _ in range(TRIES):
            try:
                peer.send(b"is somebody there?")
                peer.recv(100)
            except ConnectionRefusedError:
                time.sleep(0.01)
            except TimeoutError:
                break
        server.send_signal(signal.SIGSTOP)
        os.waitpid(server.pid, os.WUNTRACED)
        peer.send(datagram(DATA, 0))
        stranger.send(datagram(DATA, 1))
        stranger.send(datagram(FIN, 2))
        server.send_signal(signal.SIGCONT)
        peer.settimeout(30)
        assert receive(peer) == (ACK, 0)
        peer.send(datagram(PROBE, NO_MESSAGE))
        assert receive(peer) == (ACK, NO_MESSAGE), \
            "it took datagrams of somebody else"
        # The last message is here before the one in front of it, and what is
        # too far ahead is not acknowledged.
        peer.send(datagram(DATA, 1 + 256))
        for kind, number in (FIN, 2), (DATA, 0), (DATA, 1):
            assert server.poll() is None
            peer.send(datagram(kind, number))
            assert receive(peer) == (ACK, number)
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.wait()
        peer.close()
        stranger.close()


def check_losses(program, count, window, drop):
    output = subprocess.run(
        [program, "--count", str(count), "--window", str(window), "--drop",
         str(drop)], check=True, stdout=subprocess.PIPE, text=True,
        timeout=120).stdout
    print(f"window {window}, drop {drop} %\n{output}", end="")
    client, server = [[int(number) for number in re.findall(r"\d+", line)]
                      for line in output.splitlines()]
    assert client[0] == server[0] == count, "messages are missing"
    _, again, times, by_evidence, _, dropped = client[:6]
    assert dropped > 0 and again >= times >= by_evidence > 0


# Messages of 24 bytes; one, and those of a ms, may go at once.
def check_rate(program):
    begin = time.monotonic()
    subprocess.run([program, "--count", "500", "--rate", "24000"], check=True,
                   timeout=120)
    assert time.monotonic() - begin > 0.99 * (500 - 2) / 1000, "too fast"


def main(program):
    check_strangers(program)
    check_rate(program)
    for window, drop in (2, 10), (16, 10), (256, 30):
        check_losses(program, 2000, window, drop)


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
