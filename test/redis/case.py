# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""For tests of the module in real servers.

usage: NAME_test.py MODULE [CASE...]
LAWN_REDIS_RUN may have words to put before redis-server."""
import pathlib
import sys
import tempfile
import time
import unittest

from private_redis import Error, Server

module = None  # a path


class Case(unittest.TestCase):
    options = ()

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        # Of those that listen. A Cluster has also what is 10,000 above.
        self.first_port = 10000 + int(place.name.encode().hex(), 16) % 1200 * 10
        self.servers = []
        self.server = self.open("a", *self.options)
        self.call = self.connect()

    def open(self, name, *options, port=0):
        server = Server(self.place / name, module, *options, port=port)
        self.servers.append(server)
        self.addCleanup(lambda: self.assertIn(server.stop(), (0, -9)))
        return server

    def connect(self, server=None):
        connection = (server or self.server).connect()
        self.addCleanup(connection.close)
        return connection

    def refused(self, text, *words, call=None):
        with self.assertRaises(Error) as caught:
            (call or self.call)(*words)
        self.assertIn(text, str(caught.exception))

    def eventually(self, holds, what="it"):
        deadline = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def later(self, *words, others=0, server=None):
        """A connection whose request waits, as those of others do."""
        call = self.connect(server)
        waiting = self.connect(server)
        self.eventually(lambda: self.blocked(call) == others)
        waiting.send(*words)
        self.eventually(lambda: self.blocked(call) == others + 1)
        return waiting

    def blocked(self, call=None):
        info = (call or self.call)("INFO", "clients").decode()
        return int(info.split("blocked_clients:")[1].split()[0])


def main():
    global module
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    module = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
