#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Dehydrators in a Redis Cluster: three nodes and a replica of the first, whose
slots move, and of which one fails."""
from case import Case, main
from private_redis import Error

NODES = 3
SLOTS = 16384


class Cluster(Case):
    def setUp(self):
        super().setUp()
        self.nodes = [
            self.open("n%d" % i, "--cluster-enabled", "yes",
                      "--cluster-node-timeout", 2000,
                      port=self.first_port + i) for i in range(NODES + 1)]
        self.to = [self.connect(node) for node in self.nodes]
        self.ids = [to("CLUSTER", "MYID") for to in self.to]
        for i in range(NODES):
            self.to[i]("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // NODES,
                       SLOTS * (i + 1) // NODES - 1)
            self.to[i]("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            for to in self.to[:i] + self.to[NODES:]:  # gossip takes seconds
                to("CLUSTER", "MEET", "127.0.0.1", self.nodes[i].port)
        self.eventually(lambda: all(
            b"cluster_known_nodes:4\r" in info and
            b"cluster_state:ok" in info and
            b"cluster_slots_assigned:16384" in info
            for info in (to("CLUSTER", "INFO") for to in self.to)))
        self.to[NODES]("CLUSTER", "REPLICATE", self.ids[0])
        self.eventually(lambda: b"master_link_status:up" in
                        self.to[NODES]("INFO", "replication"))
        self.eventually(lambda: all(  # else it is not elected
            b"slave " in to("CLUSTER", "NODES") for to in self.to))

    def key_of(self, node):
        """A key that is in the slots of a node."""
        for i in range(1000):
            slot = self.to[0]("CLUSTER", "KEYSLOT", "k%d" % i)
            if slot * NODES // SLOTS == node:
                return "k%d" % i, slot
        self.fail("no key")

    def test_a_key_is_where_its_slot_is(self):
        for owner in range(NODES):
            key, slot = self.key_of(owner)
            for node in range(NODES):
                if node != owner:
                    for words in (("PUSH", key, 0, "a", "x"), ("POLL", key),
                                  ("LOOK", key, "a"), ("TTN", key)):
                        self.refused(
                            "MOVED %d 127.0.0.1:%d" %
                            (slot, self.nodes[owner].port),
                            "LAWN." + words[0], *words[1:], call=self.to[node])
            self.assertEqual(
                self.to[owner]("LAWN.PUSH", key, 0, "a", "x"), 1)
            self.assertEqual(self.to[owner]("LAWN.POLL", key), [[b"a", b"x"]])

    def test_a_slot_moves_with_its_elements_and_those_who_wait(self):
        key, slot = self.key_of(1)
        self.to[1]("LAWN.PUSH", key, 1500, "a", "x")
        self.to[1]("LAWN.PUSH", key, 90000, "b", "y")
        left = self.to[1]("LAWN.TTN", key)
        waiting = self.later("LAWN.POLL", key, "BLOCK", 0,
                             server=self.nodes[1])
        self.to[2]("CLUSTER", "SETSLOT", slot, "IMPORTING", self.ids[1])
        self.to[1]("CLUSTER", "SETSLOT", slot, "MIGRATING", self.ids[2])
        self.to[1]("MIGRATE", "127.0.0.1", self.nodes[2].port, key, 0, 5000)
        self.refused("ASK", "LAWN.COUNT", key, call=self.to[1])
        self.to[2]("ASKING")
        self.assertEqual(self.to[2]("LAWN.COUNT", key), 2)
        for node in (2, 1):
            self.to[node]("CLUSTER", "SETSLOT", slot, "NODE", self.ids[2])
        reply = waiting.receive()
        self.assertIsInstance(reply, Error)
        self.assertIn("MOVED %d" % slot, str(reply))
        self.assertLessEqual(self.to[2]("LAWN.TTN", key), left)
        self.assertEqual(self.to[2]("LAWN.POLL", key, "BLOCK", 0),
                         [[b"a", b"x"]])
        self.assertEqual(self.to[2]("LAWN.COUNT", key), 1)

    def test_a_replica_takes_over_while_clients_wait(self):
        key, _ = self.key_of(0)
        self.to[0]("LAWN.PUSH", key, 1000, "a", "x")
        waiting = self.later("LAWN.POLL", key, "BLOCK", 0,
                             server=self.nodes[0])
        self.to[NODES]("CLUSTER", "FAILOVER")
        self.eventually(lambda: b"role:master" in
                        self.to[NODES]("INFO", "replication"))
        self.assertEqual(
            self.to[NODES]("LAWN.POLL", key, "BLOCK", 0), [[b"a", b"x"]])
        self.assertIsInstance(waiting.receive(), Error)

    def test_a_node_that_dies_takes_no_element_with_it(self):
        key, _ = self.key_of(0)
        self.to[0]("LAWN.PUSH", key, 500, "a", "x")
        self.to[0]("LAWN.PUSH", key, 90000, "b", "y")
        self.to[0]("WAIT", 1, 0)
        self.nodes[0].kill()
        self.eventually(lambda: b"role:master" in
                        self.to[NODES]("INFO", "replication"))
        self.eventually(lambda: b"cluster_state:ok" in
                        self.to[NODES]("CLUSTER", "INFO"))
        self.assertEqual(
            self.to[NODES]("LAWN.POLL", key, "BLOCK", 0), [[b"a", b"x"]])
        self.assertEqual(self.to[NODES]("LAWN.COUNT", key), 1)


main()
