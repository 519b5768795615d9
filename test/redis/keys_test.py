#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""A dehydrator as a key of Redis: what contrib/redis/README.md says of that."""
import time

import case
from case import Case, main
from private_redis import Error


class AsOtherKeys(Case):
    def test_scripts_and_transactions(self):
        self.assertEqual(self.call("EVAL", """
            redis.call('LAWN.PUSH', KEYS[1], 0, 'a', 'x')
            redis.call('LAWN.PUSH', KEYS[1], 9999, 'b', 'y')
            return {redis.call('LAWN.POLL', KEYS[1]),
                    redis.call('LAWN.COUNT', KEYS[1])}""", 1, "k"),
                         [[[b"a", b"x"]], 1])
        self.call("WATCH", "k")
        other = self.connect()
        other("LAWN.POLL", "k")  # nothing is due, nothing changes
        self.call("MULTI")
        self.call("LAWN.COUNT", "k")
        self.assertEqual(self.call("EXEC"), [1])
        self.call("WATCH", "k")
        other("LAWN.UPDATE", "k", "b", 5000)
        self.call("MULTI")
        self.call("LAWN.COUNT", "k")
        self.assertIsNone(self.call("EXEC"))

    def test_copy_dump_and_restore(self):
        self.call.many([["LAWN.PUSH", "k", 50000 + i % 3, i, "x" * i]
                        for i in range(300)])
        self.call("LAWN.UPDATE", "k", 7, 0)
        self.call("COPY", "k", "l")
        self.call("RESTORE", "m", 0, self.call("DUMP", "k"))
        digests = self.call("DEBUG", "DIGEST-VALUE", "k", "l", "m")
        self.assertEqual(len(set(digests)), 1)
        self.assertEqual(self.call("LAWN.POLL", "k"), [[b"7", b"x" * 7]])
        self.assertNotEqual(*self.call("DEBUG", "DIGEST-VALUE", "k", "l"))
        self.assertEqual(self.call("LAWN.PULL", "m", 7), b"x" * 7)

    def test_memory_is_told_and_given_back(self):
        self.call("LAWN.PUSH", "k", 9999, "a", "x")
        small = self.call("MEMORY", "USAGE", "k", "SAMPLES", 0)
        self.assertLess(small, 1000)
        before = self.call("INFO", "memory").decode()
        self.call.many([["LAWN.PUSH", "k", 9999, i, "x" * 100]
                        for i in range(10000)])
        usage = self.call("MEMORY", "USAGE", "k", "SAMPLES", 0)
        self.assertGreater(usage, 10000 * 130)
        self.assertLess(usage, 10000 * 200)
        used = [int(text.split("used_memory:")[1].split()[0]) for text in (
            before, self.call("INFO", "memory").decode())]
        self.assertAlmostEqual(used[1] - used[0], usage - small,
                               delta=usage / 10)
        self.call("UNLINK", "k")
        self.call("DEBUG", "SLEEP", 0)
        self.eventually(lambda: int(
            self.call("INFO", "memory").decode().split("used_memory:")[1]
            .split()[0]) < used[0] + usage / 5)

    def test_a_limit_of_memory_refuses_what_is_added(self):
        self.call("LAWN.PUSH", "k", 0, "a", "x")
        self.call("CONFIG", "SET", "maxmemory", 1)
        self.refused("OOM", "LAWN.PUSH", "k", 0, "b", "y")
        self.assertEqual(self.call("LAWN.POLL", "k"), [[b"a", b"x"]])
        self.call("CONFIG", "SET", "maxmemory", 0)

    def test_commands_are_described(self):
        names = {"count": 0, "drop": 1, "look": 1, "poll": 0, "pull": 1,
                 "push": 3, "pushat": 3, "ttn": 0, "update": 2, "updateat": 2}
        for name, more in names.items():
            docs = self.call("COMMAND", "DOCS", "lawn." + name)
            self.assertIn(b"summary", docs[1])
            self.assertEqual(self.call("COMMAND", "GETKEYS", "lawn." + name,
                                       "k", *range(more)), [b"k"])
        info = {row[0].decode(): row for row in self.call(
            "COMMAND", "INFO", *("lawn." + name for name in names))}
        self.assertIn(b"readonly", info["lawn.look"][2])
        self.assertIn(b"blocking", info["lawn.poll"][2])
        self.assertIn(b"write", info["lawn.push"][2])
        version = self.call("INFO", "server").decode().split(
            "redis_version:")[1].split(".")
        if (int(version[0]), int(version[1])) >= (7, 4):
            self.assertIn(b"@write", info["lawn.push"][6])

    def test_rights_are_those_of_reading_and_writing(self):
        self.call("ACL", "SETUSER", "reader", "on", "nopass", "~k", "%R~r",
                  "+lawn.look", "+lawn.push", "+auth")
        reader = self.connect()
        reader("AUTH", "reader", "x")
        self.assertIsNone(reader("LAWN.LOOK", "r", "a"))
        self.assertEqual(reader("LAWN.PUSH", "k", 9, "a", "x"), 1)
        for words in (["LAWN.PUSH", "r", 9, "a", "x"],
                      ["LAWN.LOOK", "l", "a"], ["LAWN.PULL", "k", "a"]):
            with self.assertRaises(Error) as caught:
                reader(*words)
            self.assertIn("NOPERM", str(caught.exception))

    def test_events_are_told(self):
        self.call("CONFIG", "SET", "notify-keyspace-events", "KEAd")
        heard = self.connect()
        heard("PSUBSCRIBE", "__keyevent@0__:*")
        for words in (["PUSH", "k", 9999, "a", "x"], ["UPDATE", "k", "a", 0],
                      ["POLL", "k"], ["POLL", "k"], ["PUSH", "k", 9, "b", "y"],
                      ["PULL", "k", "b"], ["PUSH", "k", 9, "b", "y"],
                      ["DROP", "k", "c"], ["DROP", "k", "b"]):
            self.call("LAWN." + words[0], *words[1:])
        events = [heard.receive()[2].split(b":")[1].decode()
                  for _ in range(9)]
        self.assertEqual(events, [
            "lawn.push", "lawn.update", "lawn.poll", "del", "lawn.push",
            "lawn.pull", "del", "lawn.push", "lawn.drop"])

    def test_defragmentation_moves_elements(self):
        if isinstance(self.call.many(
                [["CONFIG", "SET", "activedefrag", "yes"]])[0], Error):
            self.skipTest("this server has no allocator for it")
        self.call("CONFIG", "SET", "active-defrag-ignore-bytes", "1")
        self.call("CONFIG", "SET", "active-defrag-threshold-lower", "0")
        count = 30000
        self.call.many([["LAWN.PUSH", "k", 99999, i, "x" * 60]
                        for i in range(count)])
        self.call("LAWN.DROP", "k", *(i for i in range(count) if i % 8))
        self.eventually(lambda: b"active_defrag_key_hits:0\r" not in
                        self.call("INFO", "stats"))
        for i in range(0, count, 8):
            self.call("LAWN.UPDATE", "k", i, 0)
        self.assertEqual([int(item[0]) for item in self.call("LAWN.POLL", "k")],
                         list(range(0, count, 8)))

    def test_it_takes_no_arguments_and_loads_once(self):
        self.refused("", "MODULE", "LOAD", str(case.module))
        self.assertIn(b"lawn", sum(self.call("MODULE", "LIST"), []))


class Kept(Case):
    options = ("--appendonly", "yes", "--appendfsync", "always")

    def restart(self):
        self.call.close()
        self.server.kill()
        self.server.start()
        self.call = self.connect()

    def fill(self):
        self.call.many([["LAWN.PUSH", "k", 90000 + i % 5, i, "x" * (i % 99)]
                        for i in range(1000)])
        self.call.many([["LAWN.UPDATE", "k", i, 80000]
                        for i in range(0, 1000, 7)])
        self.call("LAWN.PUSH", "k", 0, "due", "y")
        self.call("LAWN.POLL", "k")
        self.call("LAWN.PULL", "k", 5)
        self.call("LAWN.DROP", "k", 6, 8, 10)

    def test_a_kill_loses_nothing(self):
        self.fill()
        before = self.call("DEBUG", "DIGEST-VALUE", "k")
        ttn = self.call("LAWN.TTN", "k")
        self.restart()
        self.assertEqual(self.call("DEBUG", "DIGEST-VALUE", "k"), before)
        self.assertEqual(self.call("LAWN.COUNT", "k"), 996)
        self.assertLessEqual(self.call("LAWN.TTN", "k"), ttn)

    def test_the_rewritten_log_has_all(self):
        for preamble in "yes", "no":
            self.call("CONFIG", "SET", "aof-use-rdb-preamble", preamble)
            self.call("FLUSHALL")
            self.fill()
            before = self.call("DEBUG", "DIGEST-VALUE", "k")
            self.call("BGREWRITEAOF")
            self.eventually(lambda: b"aof_rewrite_in_progress:0" in
                            self.call("INFO", "persistence"))
            self.restart()
            self.assertEqual(self.call("DEBUG", "DIGEST-VALUE", "k"), before)

    def test_time_goes_on_while_it_is_down(self):
        self.call("LAWN.PUSH", "k", 100, "a", "x")
        self.call.close()
        self.server.kill()
        time.sleep(0.15)
        self.server.start()
        self.call = self.connect()
        self.assertEqual(self.call("LAWN.POLL", "k"), [[b"a", b"x"]])
        self.restart()
        self.assertEqual(self.call("EXISTS", "k"), 0)


class ToldToAnother(Case):
    @property
    def options(self):
        return "--loadmodule", case.module.with_name("libnothing.so")

    def test_who_is_told_may_delete_the_key(self):
        self.call("LAWN.PUSH", "old", 0, "a", "x")
        self.call("LAWN.PUSH", "old", 0, "b", "x")
        self.call("NOTHING.DELETE")
        self.assertEqual(self.call("LAWN.PUSH", "k", 1000, "a", "x"), 1)
        self.assertEqual(
            self.call("LAWN.POLL", "old", "COUNT", 1), [[b"a", b"x"]])
        self.assertEqual(self.call("EXISTS", "k", "old"), 0)


class Replicated(Case):
    def setUp(self):
        super().setUp()
        self.primary = self.open("p", port=self.first_port)
        self.call("REPLICAOF", "127.0.0.1", self.first_port)
        self.write = self.connect(self.primary)
        self.eventually(lambda: b"master_link_status:up" in
                        self.call("INFO", "replication"))

    def same(self):
        self.write("WAIT", 1, 0)
        self.assertEqual(self.call("DEBUG", "DIGEST"),
                         self.write("DEBUG", "DIGEST"))

    def test_a_replica_has_the_same(self):
        waiting = self.connect(self.primary)
        for i in range(500):
            self.write("LAWN.PUSH", "k%d" % (i % 3), i % 7, i, "x" * i)
        waiting.send("LAWN.POLL", "k0", "BLOCK", 0)
        self.write("LAWN.UPDATE", "k1", 1, 90000)
        waiting.receive()
        self.write("LAWN.POLL", "k1", "COUNT", 3)
        self.write("EVAL", "redis.call('LAWN.POLL', KEYS[1])", 1, "k2")
        self.write("LAWN.PUSH", "k3", 50, "last", "x")
        self.same()
        time.sleep(0.1)
        self.assertEqual(self.call("LAWN.COUNT", "k3"), 1)  # it decides nothing
        self.refused("READONLY", "LAWN.POLL", "k3")
        self.assertEqual(self.write("LAWN.POLL", "k3"), [[b"last", b"x"]])
        self.same()

    def test_a_failover_loses_no_time(self):
        self.write("LAWN.PUSH", "k", 300, "a", "x")
        self.write("LAWN.PUSH", "k", 90000, "b", "y")
        self.write("WAIT", 1, 0)
        self.primary.kill()
        self.call("REPLICAOF", "NO", "ONE")
        self.assertEqual(self.call("LAWN.POLL", "k", "BLOCK", 0),
                         [[b"a", b"x"]])

    def test_clients_that_wait_for_a_replica_that_can_be_written(self):
        self.call("CONFIG", "SET", "replica-read-only", "no")
        waiting = self.later("LAWN.POLL", "w", "BLOCK", 0)
        self.call("LAWN.PUSH", "w", 50, "a", "x")
        self.assertEqual(waiting.receive(), [[b"a", b"x"]])

    def test_clients_that_wait_when_it_becomes_a_replica(self):
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0, server=self.primary)
        self.call("REPLICAOF", "NO", "ONE")
        self.call("LAWN.PUSH", "k", 0, "a", "x")
        port = self.first_port + 1
        self.call("CONFIG", "SET", "port", port)
        self.write("REPLICAOF", "127.0.0.1", port)
        reply = waiting.receive()
        self.assertIsInstance(reply, Error)
        self.assertEqual(self.call("LAWN.COUNT", "k"), 1)


main()
