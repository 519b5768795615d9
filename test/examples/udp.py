#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""examples/udp with datagrams of somebody else, that are there before it has
met its peer.

usage: udp.py PROGRAM"""
import os
import signal
import socket
import struct
import subprocess
import sys
import time

TRIES = 2000  # of 10 ms
MAGIC = 0x6C61776E
DATA, FIN, ACK, PROBE = 1, 2, 3, 4


def datagram(kind, number):
    return struct.pack("!IIQQ", MAGIC, kind, number, 0)


def receive(client):
    _, kind, number, _ = struct.unpack("!IIQQ", client.recv(100))
    return kind, number


def main(program):
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
        assert receive(peer) == (ACK, 1)
        peer.send(datagram(PROBE, 0))
        assert receive(peer) == (ACK, 1), "it took datagrams of somebody else"
        peer.send(datagram(FIN, 1))
        assert receive(peer) == (ACK, 2)
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.wait()
        peer.close()
        stranger.close()


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
