#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""bench/compare works, with what needs no package from npm, and counts
what is lost; bench/scale computes right.

usage: compare.py SOURCE_ROOT BUILD_ROOT REDIS_SERVER"""
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
REDIS_SERVER = sys.argv[3]
BENCH = SOURCE / "durable/bench"
sys.path.insert(0, str(BENCH))
import contenders  # pylint: disable=wrong-import-position
import private_redis  # pylint: disable=wrong-import-position
import server_model  # pylint: disable=wrong-import-position

COSTS = """\
batch    start     fire     read   answer      all     ping
    1     10.0     12.0      8.0     10.0     40.0      5.0
   10      5.5      4.8      1.7      5.5     17.5      0.5
memory: 300 bytes per pending timer with a payload of 32 bytes
"""


def run(program, *arguments, **options):
    return subprocess.run([sys.executable, BENCH / program, *arguments],
                          capture_output=True, text=True, check=False,
                          **options)


class Compare(unittest.TestCase):
    def test_prints_a_row_for_each_contender(self):
        done = run("compare", "--quick", "--no-build", "--contenders",
                   "lawn,known", "--build", BUILD, "--redis-server",
                   REDIS_SERVER)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = {line.split()[0]: line.split()
                for line in done.stdout.splitlines() if line.strip()}
        self.assertEqual(rows["lawn"][1], "1000")
        self.assertEqual(rows["lawn"][-4:], ["0"] * 4)
        self.assertEqual(rows["known"][1], "1000")
        self.assertEqual(len(rows["lawn"]), len(rows["known"]))

    def test_says_what_is_missing(self):
        done = run("compare", "--quick", "--no-build", "--contenders",
                   "bullmq,known", "--build", SOURCE, "--redis-server",
                   REDIS_SERVER, env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 1)
        for text in ("bullmq is left out: no node", "known is left out: no "):
            self.assertIn(text, done.stdout)

    def test_shows_what_is_lost(self):
        """Nobody fires."""
        with private_redis.PrivateRedis(REDIS_SERVER) as redis:
            known = contenders.KnownDesign(BUILD)
            command = known.command(redis.path, contenders.Load(
                400, 0.5, 0.1, 0.1)) + ["--schedulers", "0", "--patience", "0"]
            known.command = lambda *_: command
            figures = contenders.run(redis, known, contenders.Load(
                400, 0.5, 0.1, 0.1))
        self.assertGreater(figures["acknowledged"], 0)
        self.assertEqual(figures["lost"], figures["acknowledged"])
        self.assertEqual(figures["answered"], 0)
        self.assertNotIn("redis_us", figures)

    def test_says_why_there_are_no_figures(self):
        with private_redis.PrivateRedis(REDIS_SERVER) as redis:
            known = contenders.KnownDesign(BUILD)
            known.command = lambda *_: [str(known.program), "--redis",
                                        "/nowhere", "--rate", "1",
                                        "--seconds", "1"]
            with self.assertRaisesRegex(contenders.Failed,
                                        "status 1: .*/nowhere"):
                contenders.run(redis, known, contenders.Load(1, 1, 1, 1))


class Scale(unittest.TestCase):
    def setUp(self):
        self.costs = server_model.Costs({
            "start": [(1, 10.0), (10, 5.5)],
            "fire": [(1, 12.0), (10, 4.8)],
            "read": [(1, 8.0), (10, 1.7)],
            "answer": [(1, 10.0), (10, 5.5)],
        })

    def test_fits_a_call_and_a_timer(self):
        self.assertAlmostEqual(self.costs.call["start"], 5e-6)
        self.assertAlmostEqual(self.costs.timer["start"], 5e-6)
        self.assertAlmostEqual(self.costs.of("fire", 2, 10), 56e-6)

    def test_a_server_with_little_to_do_has_whole_costs(self):
        server = server_model.Server(self.costs, server_model.Load(100),
                                     20).run()
        self.assertAlmostEqual(server.us_per_timer(), 40, delta=1)
        self.assertAlmostEqual(server.utilisation(), 0.004, delta=0.0008)
        # From the due time to the handler: two half round trips, and the fire
        # and the read.
        self.assertAlmostEqual(server.late_ms(50), 0.12, delta=0.005)

    def test_a_burst_waits_for_its_turn(self):
        server = server_model.Server(
            self.costs, server_model.Load(1000, burst=1.0), 3).run()
        # 1,000 are due at once, and fire at 4 us each; 128 are read at once,
        # and answered at 5 us each.
        self.assertGreater(server.late_ms(99), 4)
        self.assertLess(server.late_ms(99), 20)
        self.assertLess(server.late_ms(1), server.late_ms(99))

    def test_too_much_is_late_without_end(self):
        server = server_model.Server(self.costs, server_model.Load(200000),
                                     0.3).run()
        self.assertGreater(server.utilisation(), 0.99)
        self.assertEqual(server.late_ms(99), float("inf"))

    def test_prints_a_plan(self):
        done = run("scale", "--costs", "-", "--seconds", "0.05", input=COSTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1e9 a day", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
