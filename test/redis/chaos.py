#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Elements in a server with AOF always and a replica, while servers are killed
and started again, and change their roles. What was acknowledged comes out once,
by a poll or a pull, and never early.

usage: chaos.py MODULE [--seconds N] [--seed N]

A request whose reply did not come may have been carried out or not: an element
that such a push has added, or such a poll taken out, may be seen or not. Those
are counted, and not more than such requests explain."""
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time

from private_redis import Error, Server, random_arguments

KEY = "k"
COUNT = 20  # of a poll
LOST = OSError, ConnectionError


def now():
    return time.time_ns() // 1_000_000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class World:
    def __init__(self, place, module, seed):
        self.chance = random.Random(seed)
        self.servers = []
        for name in "a", "b":
            port = free_port()
            self.servers.append(Server(
                pathlib.Path(place) / name, module, "--appendonly", "yes",
                "--appendfsync", "always", "--repl-diskless-sync-delay", "0",
                port=port))
        self.primary = self.servers[0]
        self.follow(self.servers[1], self.primary)
        self.is_over = False
        self.lock = threading.Lock()
        self.sent = {}      # id: when it is due at the earliest
        self.known = set()  # acknowledged
        self.taken = {}     # id: when it was
        self.wrong = []
        self.unknown = 0    # elements that requests without a reply may have
        self.kills = self.failovers = 0

    @staticmethod
    def ask(server, *words):
        connection = server.connect()
        try:
            return connection(*words)
        finally:
            connection.close()

    def follow(self, replica, primary):
        self.ask(replica, "REPLICAOF", "127.0.0.1", primary.port)
        self.wait_until(lambda: b"master_link_status:up" in self.ask(
            replica, "INFO", "replication"))

    @staticmethod
    def wait_until(holds):
        deadline = time.monotonic() + 60
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError("it does not come")
            time.sleep(0.01)

    # ---- Harm.

    def kill(self):
        server = self.chance.choice(self.servers)
        server.kill()
        time.sleep(self.chance.random() * 0.3)
        server.start()
        if server is not self.primary:
            # It has forgotten whom it followed.
            self.follow(server, self.primary)
        self.kills += 1

    def has_failed_over(self, to):
        """Redis gives it up if the replica is not ready. Then once more."""
        if b"role:master" in self.ask(to, "INFO", "replication"):
            return True
        if b"no-failover" in self.ask(self.primary, "INFO", "replication"):
            try:
                self.ask(self.primary, "FAILOVER")
            except Error:
                pass
        return False

    def fail_over(self):
        other = self.servers[self.primary is self.servers[0]]
        self.wait_until(lambda: b"state=online" in self.ask(
            self.primary, "INFO", "replication"))
        self.wait_until(lambda: self.has_failed_over(other))
        self.primary = other
        self.failovers += 1

    # ---- Clients. Each has a thread.

    def client(self, seed, act):
        chance = random.Random(seed)
        connection = None
        while not self.is_over:
            try:
                if connection is None:
                    server = self.primary
                    connection = server.connect()
                act(chance, connection)
                if server is not self.primary:
                    connection.close()
                    connection = None
            except LOST:
                connection = None
                time.sleep(0.02)
            except Error:  # it is loading, or a replica: nothing was done
                time.sleep(0.02)
        if connection:
            connection.close()

    def push(self, chance, connection):
        name = b"%d" % chance.getrandbits(60)
        ttl = chance.choice((0, 5, 50, 500, 3000, chance.randrange(3000)))
        with self.lock:
            self.sent[name] = now() + ttl
        if connection("LAWN.PUSH", KEY, ttl, name, name[::-1]) == 1:
            with self.lock:
                self.known.add(name)
        time.sleep(chance.random() * 0.004)

    def saw(self, name, element, is_pull=False):
        at = now()
        with self.lock:
            if name in self.taken:
                self.wrong.append(("twice", name))
            if name not in self.sent or element != name[::-1]:
                self.wrong.append(("invented", name))
            elif not is_pull and at < self.sent[name]:
                self.wrong.append(("early", name, self.sent[name] - at))
            self.taken[name] = at

    def take(self, most, connection, *words):
        try:
            return connection(*words)
        except LOST:
            with self.lock:
                self.unknown += most
            raise

    def poll(self, chance, connection):
        block = ["BLOCK", 200] if chance.randrange(2) else []
        for name, element in self.take(COUNT, connection, "LAWN.POLL", KEY,
                                       "COUNT", COUNT, *block) or []:
            self.saw(name, element)

    def pull(self, chance, connection):
        with self.lock:
            waiting = list(self.known - self.taken.keys())[:100]
        if waiting:
            name = chance.choice(waiting)
            element = self.take(1, connection, "LAWN.PULL", KEY, name)
            if element is not None:
                self.saw(name, element, True)
        time.sleep(chance.random() * 0.02)

    # ---- The run.

    def run(self, seconds):
        threads = [threading.Thread(target=self.client,
                                    args=(self.chance.random(), act))
                   for act in (self.push,) * 3 + (self.poll,) * 2 + (self.pull,)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                time.sleep(self.chance.random())
                self.chance.choice((self.kill, self.fail_over))()
        finally:
            self.is_over = True
            for thread in threads:
                thread.join()
        connection = self.primary.connect()
        while connection("LAWN.COUNT", KEY):
            for name, element in connection("LAWN.POLL", KEY, "BLOCK", 5000):
                self.saw(name, element)
        connection.close()

    def verdict(self):
        missing = len(self.known - self.taken.keys())
        print(f"{self.kills} kills, {self.failovers} failovers, "
              f"{len(self.known)} acknowledged, {len(self.taken)} taken out, "
              f"{missing} of the acknowledged not seen, of {self.unknown} that "
              f"requests without a reply may have taken out")
        if missing > self.unknown:
            self.wrong.append(("missing", missing))
        if not self.known or not self.kills or not self.failovers:
            self.wrong.append(("nothing was tested",))
        return self.wrong


def main():
    arguments = random_arguments(__doc__, 60)
    with tempfile.TemporaryDirectory() as place:
        world = World(place, arguments.module,
                      arguments.seed)
        try:
            world.run(arguments.seconds)
        finally:
            for server in world.servers:
                server.stop()
        wrong = world.verdict()
    if wrong:
        sys.exit(f"{len(wrong)} are wrong: {wrong[:10]}")


if __name__ == "__main__":
    main()
