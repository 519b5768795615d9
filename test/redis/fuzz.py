#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Random commands to the module, compared with a model; and payloads of RESTORE
with random harm, which are refused or work, and end nothing.

usage: fuzz.py MODULE [--seconds N] [--seed N]
LAWN_REDIS_RUN may have words to put before redis-server. Prints the seed."""
import random
import sys
import tempfile
import time

from private_redis import Error, Server, random_arguments

FAR = 2**52  # never due


class Model:
    """A key: ids with their elements and times. Those below FAR are past."""

    def __init__(self):
        self.items = {}

    def push(self, due, name, element):
        if name in self.items:
            return 0
        self.items[name] = (due, element)
        return 1

    def update(self, name, due):
        if name not in self.items:
            return 0
        self.items[name] = (due, self.items[name][1])
        return 1

    def take(self, name):
        return self.items.pop(name, (0, None))[1]

    def check_poll(self, reply, most):
        """The reply has the first ones, in an order that their times allow."""
        due = sorted(when for when, _ in self.items.values() if when < FAR)
        times = []
        for name, element in reply:
            when, wanted = self.items.pop(name)
            assert wanted == element, (name, element, wanted)
            times.append(when)
        assert times == due[:most], (times, due, most)


class Fuzzer:
    def __init__(self, call, chance):
        self.call = call
        self.chance = chance
        self.models = {}
        self.calls = 0

    def name(self):
        return b"%d" % self.chance.randrange(self.chance.choice((4, 300, 9000)))

    def due(self):
        return self.chance.choice((0, FAR)) + self.chance.randrange(
            self.chance.choice((1, 5, 10**6)))

    def options(self):
        """TTLs that are right, wrong and absent."""
        kind = self.chance.randrange(4)
        return [] if kind == 0 else ["TTL", self.chance.randrange(
            (3, 1000, 2**63)[kind - 1])]

    def step(self):
        chance = self.chance
        key = b"k%d" % chance.randrange(3)
        model = self.models.setdefault(key, Model())
        name, due = self.name(), self.due()
        kind = chance.randrange(12)
        self.calls += 1
        if kind < 5:
            element = chance.randbytes(chance.randrange(
                chance.choice((1, 30, 300))))
            wanted = model.push(due, name, element)
            found = self.call("LAWN.PUSHAT", key, due, name, element,
                              *self.options())
        elif kind < 7:
            wanted = model.update(name, due)
            found = self.call("LAWN.UPDATEAT", key, name, due, *self.options())
        elif kind == 7:
            wanted = model.take(name)
            found = self.call("LAWN.PULL", key, name)
        elif kind == 8:
            names = [self.name() for _ in range(chance.randrange(1, 40))]
            wanted = sum(model.take(each) is not None for each in names)
            found = self.call("LAWN.DROP", key, *names)
        elif kind == 9:
            most = chance.choice((1, 2, 10, 1000))
            model.check_poll(self.call("LAWN.POLL", key, "COUNT", most), most)
            return
        elif kind == 10:
            wanted = model.items.get(name, (0, None))[1]
            found = self.call("LAWN.LOOK", key, name)
        else:
            self.whole(key, model)
            return
        assert wanted == found, (kind, wanted, found)

    def whole(self, key, model):
        assert self.call("LAWN.COUNT", key) == len(model.items)
        next_due = min((due for due, _ in model.items.values()), default=None)
        ttn = self.call("LAWN.TTN", key)
        assert (ttn == -1 if next_due is None else ttn == 0 if next_due < FAR
                else abs(ttn + time.time() * 1000 - next_due) < 60000), ttn
        kind = self.chance.randrange(40)
        if kind == 0:
            self.call("DEL", key)
            model.items.clear()
        elif kind == 1 and model.items:
            self.harm(self.call("DUMP", key))
        elif kind == 2 and model.items:
            self.call("RENAME", key, "spare")
            self.call("COPY", "spare", key)
            assert len(set(self.call("DEBUG", "DIGEST-VALUE", key,
                                     "spare"))) == 1
            self.call("UNLINK", "spare")
        elif kind == 3:
            self.call("DEBUG", "RELOAD")

    def harm(self, payload):
        """The version and the sum at its end stay, and the sum is not looked
        at. What was loaded has to work, as any other key."""
        for _ in range(30):
            data = bytearray(payload[:-10])
            for _ in range(self.chance.randrange(1, 4)):
                at = self.chance.randrange(9, len(data) + 1)
                kind = self.chance.randrange(4)
                if kind == 0:
                    data[at:at + 1] = self.chance.randbytes(1)
                elif kind == 1:
                    data[at:at] = self.chance.randbytes(
                        self.chance.randrange(9))
                elif kind == 2:
                    del data[at:at + self.chance.randrange(9)]
                else:
                    del data[at:]
            self.calls += 1
            try:
                self.call("RESTORE", "harmed", 0, bytes(data) + payload[-10:],
                          "REPLACE")
            except Error:
                continue
            for words in (["LAWN.COUNT", "harmed"], ["LAWN.TTN", "harmed"],
                          ["DEBUG", "DIGEST-VALUE", "harmed"],
                          ["LAWN.POLL", "harmed"], ["DEL", "harmed"]):
                self.call(*words)


def main():
    arguments = random_arguments(__doc__, 10)
    with tempfile.TemporaryDirectory() as place:
        server = Server(place, arguments.module)
        call = server.connect()
        try:
            call("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
            fuzzer = Fuzzer(call, random.Random(arguments.seed))
            end = time.monotonic() + arguments.seconds
            while time.monotonic() < end:
                fuzzer.step()
        finally:
            call.close()
            status = server.stop()
        if status != 0:
            sys.exit(f"redis-server ended with {status}")
    print(fuzzer.calls, "calls")


main()
