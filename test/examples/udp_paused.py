#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""examples/udp, stopped for 1.5 s or longer after some losses or none, goes on
with a peer that lives, and finds one that is dead.

This is the peer: it decides what is lost, and when the program is stopped. All
cases go on at once, for each waits most of its time.

usage: udp_paused.py PROGRAM"""
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

MAGIC = 0x6C61776E
DATA, FIN, ACK = 1, 2, 3
COUNT = 20  # messages
LOSSY = 10  # the message that is lost, when the path is known
PAUSE = 1.5
PEER_TIMEOUT = 5  # of the program
MOST = 120

# The message, how often it is lost, for how many seconds it is, and what then
# becomes of the answers: they wait in the receive queue of the program that is
# stopped, are lost, or there are none, as the peer is dead. The cases of
# seconds stop the program shortly before its peer timeout is over.
CASES = [
    (0, 0, 0, "wait"),
    (0, 4, 0, "wait"),
    (0, 4, 0, "lost"),
    (LOSSY, 0, 0, "lost"),
    (LOSSY, 4, 0, "lost"),
    (0, 4, PEER_TIMEOUT - 1.5, "wait"),
    (0, 4, PEER_TIMEOUT - 1.5, "lost"),
    (0, 4, PEER_TIMEOUT - 1.5, "dead"),
]


class Peer:
    """One run of the program."""

    def __init__(self, program, case):
        self.message, self.losses, self.seconds, self.answers = case
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.lost = 0
        self.lost_since = None
        self.has_stopped = False
        self.program = subprocess.Popen(
            [program, "--count", str(COUNT), "--window", "1", "127.0.0.1",
             str(self.socket.getsockname()[1])],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def receive(self, wait):
        """The next datagram and its sender, or None if there is none."""
        if not select.select([self.socket], [], [], wait)[0]:
            return None
        data, sender = self.socket.recvfrom(100)
        magic, kind, number, sent_at = struct.unpack("!IIQQ", data)
        assert magic == MAGIC
        return kind, number, sent_at, sender

    def answer(self, datagram):
        _, number, sent_at, sender = datagram
        self.socket.sendto(struct.pack("!IIQQ", MAGIC, ACK, number, sent_at),
                           sender)

    def is_lost(self, datagram):
        kind, number = datagram[:2]
        now = time.monotonic()
        if self.has_stopped:
            return False
        if self.lost_since is None:
            if self.losses == 0 or number != self.message:
                return False
            self.lost_since = now
        elif self.lost >= self.losses and now >= self.lost_since + self.seconds:
            return False
        self.lost += kind in (DATA, FIN)
        return True

    def pause(self, datagram):
        """Stops the program, which has sent this, and lets it go on."""
        self.program.send_signal(signal.SIGSTOP)
        os.waitpid(self.program.pid, os.WUNTRACED)
        self.has_stopped = True
        if self.answers == "wait":
            while datagram:
                self.answer(datagram)
                datagram = self.receive(0)
        time.sleep(PAUSE)
        if self.seconds != 0:
            left = self.lost_since + PEER_TIMEOUT + .5 - time.monotonic()
            time.sleep(max(0, left))
        while self.receive(0):
            pass
        self.program.send_signal(signal.SIGCONT)

    def run(self):
        try:
            while self.program.poll() is None:
                datagram = self.receive(.05)
                if not datagram or self.is_lost(datagram):
                    continue
                is_it = self.lost or datagram[1] == self.message
                if is_it and not self.has_stopped:
                    self.pause(datagram)
                elif not self.has_stopped or self.answers != "dead":
                    self.answer(datagram)
        finally:
            self.socket.close()

    def fault(self):
        """What is wrong with how it has ended, if anything is."""
        output = self.program.stdout.read()
        if not self.has_stopped or self.lost < self.losses:
            return f"it was not stopped: {output}"
        if self.answers == "dead":
            is_found = (self.program.returncode == 1 and
                        "the peer is dead" in output)
            return "" if is_found else f"it goes on: {output}"
        goes_on = (self.program.returncode == 0 and
                   output.startswith(f"client: {COUNT} messages,"))
        return "" if goes_on else f"it does not go on: {output}"


def main(program):
    peers = [Peer(program, case) for case in CASES]
    threads = [threading.Thread(target=peer.run, daemon=True)
               for peer in peers]
    for thread in threads:
        thread.start()
    end = time.monotonic() + MOST
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    failures = 0
    for peer, case in zip(peers, CASES):
        peer.program.kill()
        peer.program.wait()
        fault = peer.fault()
        failures += fault != ""
        print(f"{case}: {fault or 'passed'}")
    return 1 if failures else 0


if len(sys.argv) != 2:
    sys.exit(__doc__)
sys.exit(main(sys.argv[1]))
