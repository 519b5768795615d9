#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The commands of contrib/redis/README.md in real servers, and who waits."""
import time

from case import Case, main


class Commands(Case):
    def test_elements_come_out_in_the_order_of_their_time(self):
        begin = time.monotonic()
        for ttl, name in (440, "c"), (420, "a"), (430, "b"), (420, "a2"):
            self.assertEqual(
                self.call("LAWN.PUSH", "k", ttl, name, name * 2), 1)
        self.assertEqual(self.call("LAWN.COUNT", "k"), 4)
        self.assertLessEqual(self.call("LAWN.TTN", "k"), 420)
        if self.call("LAWN.POLL", "k"):
            self.assertGreaterEqual(time.monotonic() - begin, 0.419)
            return  # a busy machine
        time.sleep(0.45)
        self.assertEqual(self.call("LAWN.TTN", "k"), 0)
        self.assertEqual(self.call("LAWN.POLL", "k", "COUNT", 1),
                         [[b"a", b"aa"]])
        self.assertEqual(self.call("LAWN.POLL", "k"),
                         [[b"a2", b"a2a2"], [b"b", b"bb"], [b"c", b"cc"]])
        self.assertEqual(self.call("EXISTS", "k"), 0)
        self.assertEqual(self.call("LAWN.TTN", "k"), -1)
        self.assertEqual(self.call("LAWN.COUNT", "k"), 0)

    def test_nothing_comes_out_early(self):
        for _ in range(200):
            begin = time.time_ns()
            self.call("LAWN.PUSH", "k", 3, "id", "x")
            while not self.call("LAWN.POLL", "k"):
                pass
            self.assertGreaterEqual(time.time_ns() - begin, 2_000_000)

    def test_an_id_is_there_once(self):
        self.assertEqual(self.call("LAWN.PUSH", "k", 10000, "id", "x"), 1)
        self.assertEqual(self.call("LAWN.PUSH", "k", 1, "id", "y"), 0)
        self.assertEqual(self.call("LAWN.LOOK", "k", "id"), b"x")
        self.assertGreater(self.call("LAWN.TTN", "k"), 1000)

    def test_pull_and_drop_take_out_before_the_time(self):
        for name in "abcd":
            self.call("LAWN.PUSH", "k", 10000, name, name * 3)
        self.assertEqual(self.call("LAWN.PULL", "k", "b"), b"bbb")
        self.assertIsNone(self.call("LAWN.PULL", "k", "b"))
        self.assertIsNone(self.call("LAWN.LOOK", "k", "b"))
        self.assertEqual(self.call("LAWN.DROP", "k", "a", "b", "c", "c"), 2)
        self.assertEqual(self.call("LAWN.PULL", "k", "d"), b"ddd")
        self.assertEqual(self.call("EXISTS", "k"), 0)
        self.assertIsNone(self.call("LAWN.PULL", "k", "d"))
        self.assertEqual(self.call("LAWN.DROP", "k", "d"), 0)

    def test_update_gives_another_time(self):
        self.call("LAWN.PUSH", "k", 10000, "a", "x")
        self.call("LAWN.PUSH", "k", 10000, "b", "y")
        self.assertEqual(self.call("LAWN.UPDATE", "k", "b", 0), 1)
        self.assertEqual(self.call("LAWN.UPDATE", "k", "c", 0), 0)
        self.assertEqual(self.call("LAWN.UPDATE", "none", "c", 0), 0)
        self.assertEqual(self.call("LAWN.POLL", "k"), [[b"b", b"y"]])
        self.assertEqual(self.call("LAWN.UPDATEAT", "k", "a", 1), 1)
        self.assertEqual(self.call("LAWN.POLL", "k"), [[b"a", b"x"]])

    def test_times_may_be_absolute_and_past(self):
        seconds, microseconds = map(int, self.call("TIME"))
        now = seconds * 1000 + microseconds // 1000
        self.call("LAWN.PUSHAT", "k", now + 50000, "a", "x")
        self.call("LAWN.PUSHAT", "k", now - 50, "b", "y", "TTL", 100)
        self.call("LAWN.PUSHAT", "k", now - 60, "c", "z", "ttl", 100)
        self.assertEqual(self.call("LAWN.POLL", "k"),
                         [[b"c", b"z"], [b"b", b"y"]])
        self.assertAlmostEqual(self.call("LAWN.TTN", "k"), 50000, delta=5000)

    def test_anything_may_be_an_id_or_an_element(self):
        names = [b"", b"\0\r\n", bytes(range(256)), b"x" * 100000]
        for name in names:
            self.call("LAWN.PUSH", "k", 0, name, name[::-1])
        self.assertEqual(self.call("LAWN.LOOK", "k", names[2]), names[2][::-1])
        self.assertEqual(self.call("LAWN.POLL", "k"),
                         [[name, name[::-1]] for name in names])

    def test_the_greatest_times(self):
        most = 2**63 - 1
        self.call("LAWN.PUSH", "k", most, "a", "x")
        self.call("LAWN.PUSHAT", "k", most, "b", "y")
        self.assertGreater(self.call("LAWN.TTN", "k"), 2**62)
        self.call("LAWN.UPDATE", "k", "a", most)
        self.assertEqual(self.call("LAWN.COUNT", "k"), 2)

    # In microseconds, it is a little more than 2^64.
    def test_who_waits_for_a_far_time_holds_nobody_up(self):
        self.call("LAWN.PUSHAT", "far", 2**64 // 1000 + 1, "a", "x")
        self.later("LAWN.POLL", "far", "BLOCK", 0)
        self.comes_at_its_time(others=1)

    # 3,000,000 ms are more than 2^31 us, of which Redis makes a negative int.
    def test_who_waits_for_an_hour_costs_nothing(self):
        self.call("LAWN.PUSH", "far", 3000000, "a", "x")
        self.later("LAWN.POLL", "far", "BLOCK", 0)
        self.comes_at_its_time(others=1)
        before = self.busy()
        time.sleep(0.5)
        self.assertLess(self.busy() - before, 0.25)

    def comes_at_its_time(self, others):
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0, others=others)
        self.call("LAWN.PUSH", "k", 50, "b", "y")
        self.assertEqual(waiting.receive(), [[b"b", b"y"]])

    def busy(self):
        """Seconds of processors that the server has taken."""
        info = self.call("INFO", "cpu").decode()
        return sum(float(info.split("used_cpu_%s:" % kind)[1].split()[0])
                   for kind in ("user", "sys"))

    def test_bad_input_is_refused(self):
        for words in (["LAWN.PUSH", "k", 1, "a"],
                      ["LAWN.PUSH", "k", 1, "a", "b", "c"],
                      ["LAWN.PUSHAT", "k", 1, "a"], ["LAWN.PULL", "k"],
                      ["LAWN.DROP", "k"], ["LAWN.POLL"], ["LAWN.LOOK", "k"],
                      ["LAWN.UPDATE", "k", "a"], ["LAWN.UPDATEAT", "k", "a"],
                      ["LAWN.TTN"], ["LAWN.COUNT", "k", "l"]):
            self.refused("wrong number of arguments", *words)
        for bad in "-1", "1.5", "x", "", "9223372036854775808":
            for words in (["LAWN.PUSH", "k", bad, "a", "b"],
                          ["LAWN.UPDATE", "k", "a", bad],
                          ["LAWN.PUSHAT", "k", bad, "a", "b"],
                          ["LAWN.UPDATEAT", "k", "a", bad],
                          ["LAWN.PUSHAT", "k", 1, "a", "b", "TTL", bad],
                          ["LAWN.POLL", "k", "BLOCK", bad]):
                self.refused("is not a number of milliseconds", *words)
            self.refused("COUNT is not a positive", "LAWN.POLL", "k", "COUNT",
                         bad)
        self.refused("COUNT is not a positive", "LAWN.POLL", "k", "COUNT", 0)
        self.refused("COUNT is not a positive", "LAWN.POLL", "k", "COUNT")
        self.refused("syntax error", "LAWN.POLL", "k", "COUNTS", 1)
        self.refused("syntax error", "LAWN.PUSHAT", "k", 1, "a", "b", "TTL")
        self.refused("syntax error", "LAWN.PUSHAT", "k", 1, "a", "b", "EX", 1)
        self.refused("syntax error", "LAWN.UPDATEAT", "k", "a", 1, "TT", 1)
        self.assertEqual(self.call("EXISTS", "k"), 0)

    def test_keys_of_other_types_are_refused(self):
        self.call("SET", "k", "x")
        for words in (["PUSH", "k", 1, "a", "b"], ["PUSHAT", "k", 1, "a", "b"],
                      ["PULL", "k", "a"], ["DROP", "k", "a"], ["POLL", "k"],
                      ["POLL", "k", "BLOCK", 1], ["LOOK", "k", "a"],
                      ["UPDATE", "k", "a", 1], ["UPDATEAT", "k", "a", 1],
                      ["TTN", "k"], ["COUNT", "k"]):
            self.refused("WRONGTYPE", "LAWN." + words[0], *words[1:])
        self.call("LAWN.PUSH", "l", 1, "a", "b")
        self.refused("WRONGTYPE", "GET", "l")

    def test_resp_3(self):
        self.call("HELLO", 3)
        self.assertIsNone(self.call("LAWN.PULL", "k", "a"))
        self.assertEqual(self.call("LAWN.POLL", "k"), [])
        self.assertIsNone(self.call("LAWN.POLL", "k", "BLOCK", 1))
        self.call("LAWN.PUSH", "k", 0, "a", "b")
        self.assertEqual(self.call("LAWN.POLL", "k"), [[b"a", b"b"]])

    def test_many_elements_of_many_ttls(self):
        count = 20000
        self.call.many([["LAWN.PUSH", "k", 60000 + i * 7919 % 10007,
                         "id%d" % i, "x" * (i % 50)] for i in range(count)])
        self.assertEqual(self.call("LAWN.COUNT", "k"), count)
        self.call.many([["LAWN.UPDATEAT", "k", "id%d" % i, i + 1]
                        for i in range(0, count, 2)])
        polled = self.call("LAWN.POLL", "k")
        self.assertEqual([int(item[0][2:]) for item in polled],
                         list(range(0, count, 2)))
        dropped = self.call("LAWN.DROP", "k",
                            *("id%d" % i for i in range(count)))
        self.assertEqual(dropped, count // 2)
        self.assertEqual(self.call("EXISTS", "k"), 0)


class Waiting(Case):
    def test_a_poll_waits_for_its_time(self):
        self.assertIsNone(self.call("LAWN.POLL", "k", "BLOCK", 20))
        self.call("LAWN.PUSH", "k", 900, "a", "x")
        self.assertIsNone(self.call("LAWN.POLL", "k", "BLOCK", 20))
        self.assertEqual(self.call("LAWN.POLL", "k", "BLOCK", 0),
                         [[b"a", b"x"]])

    def test_a_poll_waits_for_as_long_as_can_be_said(self):
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 2**63 - 1)
        self.call("LAWN.PUSH", "k", 20, "a", "x")
        self.assertEqual(waiting.receive(), [[b"a", b"x"]])

    def test_what_comes_later_wakes_it(self):
        for words in (["LAWN.PUSH", "k", 0, "a", "x"],
                      ["LAWN.PUSH", "k", 30, "a", "x"],
                      ["LAWN.PUSHAT", "k", 1, "a", "x"]):
            waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
            self.call(*words)
            self.assertEqual(waiting.receive(), [[b"a", b"x"]])
            self.eventually(lambda: self.blocked() == 0)

    def test_an_earlier_time_wakes_it(self):
        self.call("LAWN.PUSH", "k", 60000, "a", "x")
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
        self.call("LAWN.PUSH", "k", 30000, "b", "y")
        self.call("LAWN.UPDATE", "k", "a", 30)
        self.assertEqual(waiting.receive(), [[b"a", b"x"]])
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
        self.call("LAWN.UPDATE", "k", "b", 0)
        self.assertEqual(waiting.receive(), [[b"b", b"y"]])

    def test_it_waits_on_if_another_takes_the_element(self):
        self.call("LAWN.PUSH", "k", 900, "a", "x")
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
        self.assertEqual(self.call("LAWN.PULL", "k", "a"), b"x")
        time.sleep(1)
        self.assertEqual(self.blocked(), 1)
        self.call("LAWN.PUSH", "k", 30, "b", "y")
        self.assertEqual(waiting.receive(), [[b"b", b"y"]])

    def test_other_commands_that_make_the_key_wake_it(self):
        def copy():
            self.call("COPY", "j", "k")

        def rename():
            self.call("RENAME", "j", "k")

        def restore():
            self.call("RESTORE", "k", 0, self.call("DUMP", "j"))

        def move():
            self.call("SELECT", 1)
            self.call("LAWN.PUSH", "k", 0, "a", "x")
            self.call("MOVE", "k", 0)
            self.call("SELECT", 0)

        def swap():
            self.call("SELECT", 1)
            self.call("LAWN.PUSH", "k", 20, "a", "x")
            self.call("SWAPDB", 0, 1)
            self.call("SELECT", 0)

        for make in copy, rename, restore, move, swap:
            self.call("LAWN.PUSH", "j", 20, "a", "x")
            waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
            make()
            self.assertEqual(waiting.receive(), [[b"a", b"x"]], make.__name__)
            self.call("FLUSHALL")

    def test_another_type_or_a_flush_does_not(self):
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
        self.call("SET", "k", "x")
        self.call("FLUSHALL")
        self.call("LPUSH", "k", "x")
        self.call("DEL", "k")
        self.assertEqual(self.blocked(), 1)
        self.call("LAWN.PUSH", "k", 10, "b", "y")
        self.assertEqual(waiting.receive(), [[b"b", b"y"]])

    def test_one_element_is_for_one_client(self):
        waiting = [self.later("LAWN.POLL", "k", "BLOCK", 0, "COUNT", 1,
                              others=i) for i in range(3)]
        for i, connection in enumerate(waiting):
            self.call("LAWN.PUSH", "k", 10, "id%d" % i, "x")
            self.assertEqual(connection.receive(), [[b"id%d" % i, b"x"]])

    def test_clients_that_leave(self):
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
        waiting.close()
        self.eventually(lambda: self.blocked() == 0)
        other = self.later("LAWN.POLL", "k", "BLOCK", 900)
        self.call("LAWN.PUSH", "k", 60000, "a", "x")
        self.assertIsNone(other.receive())
        number = self.connect()
        number.send("CLIENT", "ID")
        of = number.receive()
        number.send("LAWN.POLL", "k", "BLOCK", 0)
        self.eventually(lambda: self.blocked() == 1)
        self.call("CLIENT", "UNBLOCK", of)
        self.assertIsNone(number.receive())
        self.assertEqual(self.call("LAWN.PULL", "k", "a"), b"x")

    def test_nobody_is_served_while_clients_are_paused(self):
        self.call("LAWN.PUSH", "k", 900, "a", "x")
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
        begin = time.monotonic()
        self.call("CLIENT", "PAUSE", 1500, "WRITE")
        self.assertEqual(waiting.receive(), [[b"a", b"x"]])
        self.assertGreaterEqual(time.monotonic() - begin, 1.5)

    def test_databases_have_keys_of_their_own(self):
        waiting = self.later("LAWN.POLL", "k", "BLOCK", 0)
        self.call("SELECT", 1)
        self.call("LAWN.PUSH", "k", 0, "a", "x")
        self.assertEqual(self.blocked(), 1)
        self.call("SELECT", 0)
        self.call("LAWN.PUSH", "k", 10, "b", "y")
        self.assertEqual(waiting.receive(), [[b"b", b"y"]])

    def test_a_thousand_clients(self):
        clients = [self.connect() for _ in range(1000)]
        for connection in clients:
            connection.send("LAWN.POLL", "k", "BLOCK", 0, "COUNT", 1)
        self.eventually(lambda: self.blocked() == 1000)
        self.call.many([["LAWN.PUSH", "k", 50 + i % 100, "id%d" % i, i]
                        for i in range(1000)])
        replies = [connection.receive() for connection in clients]
        self.assertEqual(sorted(int(reply[0][1]) for reply in replies),
                         list(range(1000)))
        self.eventually(lambda: self.blocked() == 0)

    def test_nobody_waits_in_a_transaction_or_a_script(self):
        self.call("MULTI")
        self.call("LAWN.POLL", "k", "BLOCK", 0)
        self.call("LAWN.PUSH", "k", 0, "a", "x")
        self.call("LAWN.POLL", "k", "BLOCK", 0)
        self.assertEqual(self.call("EXEC"), [None, 1, [[b"a", b"x"]]])
        self.assertIsNone(self.call(
            "EVAL", "return redis.call('LAWN.POLL', KEYS[1], 'BLOCK', 0)", 1,
            "k"))


main()
