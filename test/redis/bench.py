#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""What an element's life costs a server: added, and taken out when its time has
passed; beside what people do without the module, on the same server, in turn.

usage: bench.py MODULE NOTHING [--sizes N,N] [--rounds N] [--element BYTES]
NOTHING is a module whose commands do nothing: the floor. Writes Markdown."""
import argparse
import pathlib
import random
import re
import statistics
import tempfile
import time

from private_redis import Connection, Error, Server

BATCH = 100  # of requests, and of elements that a poll takes
POLL_SET = """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1],
                       'LIMIT', 0, ARGV[2])
if #ids > 0 then redis.call('ZREM', KEYS[1], unpack(ids)) end
return ids"""
POLL_BOTH = """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1],
                       'LIMIT', 0, ARGV[2])
if #ids == 0 then return ids end
local elements = redis.call('HMGET', KEYS[2], unpack(ids))
redis.call('ZREM', KEYS[1], unpack(ids))
redis.call('HDEL', KEYS[2], unpack(ids))
return {ids, elements}"""
# Milliseconds of 2020: with a TTL of days, all have passed.
PAST = 1577836800000
STORE = pathlib.Path(__file__).resolve().parents[2] / "durable/store"
# In their order.
STORE_PARTS = re.findall(r"\w+", re.search(
    r"foreach part : \[(.*?)\]",
    (STORE.parent / "src/meson.build").read_text(), re.DOTALL)[1])


class Contender:
    """A life is what push() requests, and what take() does for a batch."""
    name = None

    def __init__(self, call, element):
        self.call = call
        self.element = element

    def push(self, number, ttl):
        raise NotImplementedError

    def push_all(self, items):
        return [words for item in items for words in self.push(*item)]

    def take(self):
        raise NotImplementedError

    def is_empty(self):
        return self.call("DBSIZE") == 0

    def close(self):
        pass


class Lawn(Contender):
    name = "LAWN.PUSH, LAWN.POLL"
    push_command = "LAWN.PUSHAT"

    def push(self, number, ttl):
        return [[self.push_command, "k", PAST + ttl, "%012d" % number,
                 self.element, "TTL", ttl]]

    def take(self):
        self.call("LAWN.POLL", "k", "COUNT", BATCH)


class Set(Contender):
    name = "sorted set"

    def __init__(self, call, element):
        super().__init__(call, element)
        self.script = call("SCRIPT", "LOAD", POLL_SET)

    def push(self, number, ttl):
        return [["ZADD", "k", PAST + ttl, "%012d:%s" % (number, self.element)]]

    def take(self):
        self.call("EVALSHA", self.script, 1, "k", 2 * PAST, BATCH)


class SetAndHash(Contender):
    name = "sorted set of ids, and a hash"

    def __init__(self, call, element):
        super().__init__(call, element)
        self.script = call("SCRIPT", "LOAD", POLL_BOTH)

    def push(self, number, ttl):
        name = "%012d" % number
        return [["ZADD", "k", PAST + ttl, name],
                ["HSET", "h", name, self.element]]

    def take(self):
        self.call("EVALSHA", self.script, 2, "k", "h", 2 * PAST, BATCH)


class Keys(Contender):
    """Redis expires them, some in each of its rounds, and tells a listener."""
    name = "keys that expire"

    def __init__(self, call, element):
        super().__init__(call, element)
        call("CONFIG", "SET", "notify-keyspace-events", "Ex")
        self.listener = Connection(call.address)
        self.listener("PSUBSCRIBE", "__keyevent@0__:expired")

    def push(self, number, ttl):
        return [["SET", "%012d" % number, self.element, "PX", 20000]]

    def take(self):
        for _ in range(BATCH):
            self.listener.receive()

    def close(self):
        self.call("CONFIG", "SET", "notify-keyspace-events", "")
        self.listener.close()


class Durable(Contender):
    """The functions of the durable tier, which gives a timer out with a lease
    and has it answered: no pump, no consumer, and no append-only file."""
    name = "durable tier"

    def __init__(self, call, element):
        super().__init__(call, element)
        text = "".join((STORE / (part + ".lua")).read_text()
                       for part in STORE_PARTS)
        call("FUNCTION", "LOAD", "REPLACE", text)
        self.function("prepare", "due body meta", 0, 0, 3600000000, 100000, 1,
                      0)
        self.function("join", "meta out", "g")

    @staticmethod
    def words(name, keys, *values):
        keys = ["{0}:" + key for key in keys.split()]
        return ["FCALL", "lawn_" + name, len(keys), *keys, *values]

    def function(self, *words):
        return self.call(*self.words(*words))

    def push_all(self, items):
        values = [value for number, ttl in items for value in (
            "%012d" % number, (PAST + ttl) * 1000, "\0" + self.element)]
        return [self.words("start", "due body meta", 1, *values)]

    def take(self):
        self.function("fire", "due body meta out push ended0 ended1 cron", 1,
                      BATCH, 0, 1)
        entries = self.call("XREADGROUP", "GROUP", "g", "c", "COUNT", BATCH,
                            "STREAMS", "{0}:out", ">")[0][1]
        answers = [value for entry, fields in entries for value in (
            entry, fields[1], fields[3][8:26], "d")]
        reply = self.function(
            "answer", "due body meta out ended0 ended1 dead", "g", *answers)
        assert reply == b"1" * BATCH, reply

    def is_empty(self):  # it remembers those that have ended
        return self.call("EXISTS", "{0}:due", "{0}:body") == 0


class Nothing(Lawn):
    """The same requests and replies."""
    name = "a module that does nothing"
    push_command = "NOTHING.PUSH"

    def take(self):
        self.call("NOTHING.POLL", "k", "COUNT", BATCH, self.element)


def info(call, section, name):
    text = call("INFO", section).decode()
    return float(text.split(name + ":")[1].split()[0])


def busy(call):
    """Microseconds of the server's thread."""
    return 1e6 * sum(info(call, "cpu", "used_cpu_%s_main_thread" % kind)
                     for kind in ("user", "sys"))


def requests(contender, size, ttls):
    chance = random.Random(1)
    for begin in range(0, size, BATCH):
        yield contender.push_all([
            (number, 1000 * (1 + number % ttls) if ttls else
             chance.randrange(10**9))
            for number in range(begin, begin + BATCH)])


def life(server, kind, size, ttls, element):
    """Returns microseconds and bytes of an element."""
    call = server.connect()
    call("FLUSHALL")
    contender = kind(call, element)
    batches = [(b"".join(map(Connection.encode, batch)), len(batch))
               for batch in requests(contender, size, ttls)]
    memory = info(call, "memory", "used_memory")
    begin = busy(call)
    for batch, count in batches:
        call.socket.sendall(batch)
        for _ in range(count):
            reply = call.receive()
            assert not isinstance(reply, Error), reply
    spent = busy(call) - begin
    bytes_each = (info(call, "memory", "used_memory") - memory) / size
    begin = busy(call)
    for _ in range(size // BATCH):
        contender.take()
    spent += busy(call) - begin
    assert contender.is_empty(), call("KEYS", "*")
    contender.close()
    call.close()
    return spent / size, bytes_each


def lateness(server, count):
    """Milliseconds from the time of an element to its arrival at a client that
    waits for it."""
    call, waiting = server.connect(), server.connect()
    chance = random.Random(2)
    late = []
    for number in range(count):
        waiting.send("LAWN.POLL", "w", "BLOCK", 0)
        due = int(time.time() * 1000) + chance.randrange(3, 30)
        call("LAWN.PUSHAT", "w", due, number, "x")
        waiting.receive()
        late.append(time.time() * 1000 - due)
    late.sort()
    call.close()
    waiting.close()
    return late[len(late) // 2], late[len(late) * 99 // 100], late[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("nothing")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--ttls", default="1,10,1000,0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--element", type=int, default=20)
    arguments = parser.parse_args()
    element = "x" * arguments.element
    with tempfile.TemporaryDirectory() as place:
        server = Server(place, pathlib.Path(arguments.module).resolve(),
                        "--loadmodule", pathlib.Path(
                            arguments.nothing).resolve())
        print("| elements | TTLs | way | us | of the sorted set's | bytes | of "
              "the sorted set's |\n|---|---|---|---|---|---|---|", flush=True)
        for size in map(int, arguments.sizes.split(",")):
            for ttls in map(int, arguments.ttls.split(",")):
                kinds = [Set, Lawn, SetAndHash, Durable, Nothing]
                if ttls == 1:
                    kinds.append(Keys)
                found = {kind: [] for kind in kinds}
                for _ in range(arguments.rounds):
                    for kind in kinds:
                        found[kind].append(life(server, kind, size, ttls,
                                                element))
                base = [statistics.median(each) for each in zip(*found[Set])]
                for kind in kinds:
                    us, size_each = (statistics.median(each)
                                     for each in zip(*found[kind]))
                    print(f"| {size} | {ttls or 'any'} | {kind.name} | "
                          f"{us:.2f} | {us / base[0]:.2f} | {size_each:.0f} | "
                          f"{size_each / base[1]:.2f} |", flush=True)
        print("\nlate, ms: p50 %.2f, p99 %.2f, most %.2f" %
              lateness(server, 2000))
        server.stop()


if __name__ == "__main__":
    main()
