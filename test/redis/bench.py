#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""What an element's life costs a server: added, and taken out when its time has
passed; beside what people do without the module, on the same server, in turn.

usage: bench.py MODULE NOTHING [--sizes N,N] [--rounds N] [--element BYTES]
NOTHING is a module whose commands do nothing: the floor. Writes Markdown."""
import argparse
import pathlib
import random
import statistics
import tempfile
import time

from private_redis import Connection, Server

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
# Times of the same order: of each, all have passed.
PAST = 10**12


class Contender:
    """Makes requests. A life is what push() and poll() make."""
    name = None
    polls = True

    def __init__(self, call, element):
        self.call = call
        self.element = element

    def push(self, number, ttl):
        raise NotImplementedError

    def poll(self):
        return []


class Lawn(Contender):
    name = "LAWN.PUSH, LAWN.POLL"

    def push(self, number, ttl):
        return [["LAWN.PUSHAT", "k", PAST + ttl, "%012d" % number,
                 self.element, "TTL", ttl]]

    def poll(self):
        return [["LAWN.POLL", "k", "COUNT", BATCH]]


class Set(Contender):
    name = "sorted set"

    def __init__(self, call, element):
        super().__init__(call, element)
        self.script = call("SCRIPT", "LOAD", POLL_SET)

    def push(self, number, ttl):
        return [["ZADD", "k", PAST + ttl, "%012d:%s" % (number, self.element)]]

    def poll(self):
        return [["EVALSHA", self.script, 1, "k", 2 * PAST, BATCH]]


class SetAndHash(Contender):
    name = "sorted set of ids, and a hash"

    def __init__(self, call, element):
        super().__init__(call, element)
        self.script = call("SCRIPT", "LOAD", POLL_BOTH)

    def push(self, number, ttl):
        name = "%012d" % number
        return [["ZADD", "k", PAST + ttl, name],
                ["HSET", "h", name, self.element]]

    def poll(self):
        return [["EVALSHA", self.script, 2, "k", "h", 2 * PAST, BATCH]]


class Keys(Contender):
    """Redis expires them, some in each of its rounds, and tells a listener."""
    name = "keys that expire"
    polls = False

    def __init__(self, call, element):
        super().__init__(call, element)
        call("CONFIG", "SET", "notify-keyspace-events", "Ex")

    def push(self, number, ttl):
        return [["SET", "%012d" % number, self.element, "PX", 20000]]


class Nothing(Contender):
    name = "a module that does nothing"

    def push(self, number, ttl):
        return [["NOTHING.PUSH", "k", PAST + ttl, "%012d" % number,
                 self.element, "TTL", ttl]]

    def poll(self):
        return [["NOTHING.POLL", "k", "COUNT", BATCH, self.element]]


def info(call, section, name):
    text = call("INFO", section).decode()
    return float(text.split(name + ":")[1].split()[0])


def busy(call):
    """Microseconds of the server's thread."""
    return 1e6 * sum(info(call, "cpu", "used_cpu_%s_main_thread" % kind)
                     for kind in ("user", "sys"))


def requests(contender, size, ttls):
    chance = random.Random(1)
    numbers = list(range(size))
    for begin in range(0, size, BATCH):
        batch = []
        for number in numbers[begin:begin + BATCH]:
            ttl = chance.randrange(10**9) if not ttls else (
                1000 * (1 + number % ttls))
            batch += contender.push(number, ttl)
        yield batch


def life(server, kind, size, ttls, element):
    """Returns microseconds and bytes of an element."""
    call = server.connect()
    call("FLUSHALL")
    listener = server.connect()
    listener("PSUBSCRIBE", "__keyevent@0__:expired")
    contender = kind(call, element)
    batches = [(b"".join(map(Connection.encode, batch)), len(batch))
               for batch in requests(contender, size, ttls)]
    memory = info(call, "memory", "used_memory")
    begin = busy(call)
    for batch, count in batches:
        call.socket.sendall(batch)
        for _ in range(count):
            call.receive()
    spent = busy(call) - begin
    bytes_each = (info(call, "memory", "used_memory") - memory) / size
    if contender.polls:
        begin = busy(call)
        for _ in range(size // BATCH):
            call(*contender.poll()[0])
        spent += busy(call) - begin
        if not isinstance(contender, Nothing):
            assert call("DBSIZE") == 0
    else:
        begin = busy(call)
        for _ in range(size):
            listener.receive()
        spent += busy(call) - begin
    call("CONFIG", "SET", "notify-keyspace-events", "")
    call.close()
    listener.close()
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
                kinds = [Set, Lawn, SetAndHash, Nothing]
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
