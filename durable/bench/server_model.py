# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""A model of one redis-server of the durable tier: one thread that serves, in
the order of their arrival, starts, fires, reads and answers, each at its
measured cost. Pumps and consumers are elsewhere and never busy.

As in the real tier, a pump calls at each due time, but not more often than
once in a while for a shard, and does not wait for the answers; a call fires all
that is due when it is served. A consumer waits for entries of all shards,
answers what it was given, one call for each shard, and reads again."""
import heapq
import itertools
import math
import random

HALF_ROUND_TRIP = 50e-6  # seconds
MOST_FIRED = 500  # by one call
MOST_READ = 128  # entries of a shard
WARM_UP = 0.5  # seconds that are not counted
OPERATIONS = ("start", "fire", "read", "answer")


class Costs:
    """For each operation, the seconds of a call and of each timer in it."""

    def __init__(self, measured):
        """`measured`: for each operation, pairs of a batch's size and the
        microseconds for each timer of such a batch."""
        self.call = {}
        self.timer = {}
        for name in OPERATIONS:
            # us = timer + call / size: a straight line over 1 / size.
            points = [(1 / size, us) for size, us in measured[name]]
            mean_x = sum(x for x, _ in points) / len(points)
            mean_y = sum(y for _, y in points) / len(points)
            slope = (sum((x - mean_x) * (y - mean_y) for x, y in points)
                     / sum((x - mean_x) ** 2 for x, _ in points))
            self.call[name] = max(slope, 0) * 1e-6
            self.timer[name] = max(mean_y - slope * mean_x, 0) * 1e-6

    def of(self, name, calls, timers):
        return self.call[name] * calls + self.timer[name] * timers


class Load:
    """`rate` timers are started, and as many are due, in each second. Of these,
    `burst` (0 to 1) are due at the full second, all at once. A pump's calls for
    a shard are `coalesce` seconds apart, as lawn_durable_pump_params_t has
    it."""

    def __init__(self, rate, burst=0.0, shards=1, clients=1, coalesce=1e-3):
        self.rate = rate
        self.burst = burst
        self.shards = shards
        self.clients = clients
        self.coalesce = coalesce


def arrivals(rng, rate, until):
    """Of a Poisson process."""
    times = []
    at = 0.0
    while rate > 0:
        at += rng.expovariate(rate)
        if at >= until:
            break
        times.append(at)
    return times


def due_times(rng, load, until):
    """For each shard, ascending."""
    dues = [[] for _ in range(load.shards)]
    for at in arrivals(rng, load.rate * (1 - load.burst), until):
        dues[rng.randrange(load.shards)].append(at)
    for second in range(1, math.ceil(until)):
        for _ in range(round(load.rate * load.burst)):
            dues[rng.randrange(load.shards)].append(float(second))
    for shard in dues:
        shard.sort()
    return dues


def pump_calls(dues, shard, coalesce):
    """When calls for what is due arrive."""
    sent = -math.inf
    for due in dues:
        if due > sent:
            sent = max(due, sent + coalesce)
            yield (sent + HALF_ROUND_TRIP, "fire", shard, 0)


class Server:
    def __init__(self, costs, load, seconds, seed=1):
        rng = random.Random(seed)
        self.costs = costs
        self.load = load
        self.until = seconds + WARM_UP
        self.starts = arrivals(rng, load.rate, self.until)
        self.started = 0
        self.dues = due_times(rng, load, self.until)
        self.fired = [0] * load.shards  # how many of the dues
        self.read = [0] * load.shards
        self.calls = heapq.merge(*(pump_calls(dues, shard, load.coalesce)
                                   for shard, dues in enumerate(self.dues)))
        self.next_call = next(self.calls, None)
        self.later = []  # calls that follow from others
        self.is_reading = True
        self.now = 0.0
        self.busy = 0.0
        self.ended = 0
        self.backlog = 0  # the most requests that were there at once
        self.lateness = []

    def work(self, seconds):
        self.now += seconds
        self.busy += seconds if self.now > WARM_UP else 0

    def first_arrival(self):
        times = [self.starts[self.started]] \
            if self.started < len(self.starts) else []
        if self.next_call:
            times.append(self.next_call[0])
        if self.later:
            times.append(self.later[0][0])
        return min(times, default=math.inf)

    def take_arrived(self):
        """The calls that are here; what is started is only counted."""
        first = self.started
        while (self.started < len(self.starts)
               and self.starts[self.started] <= self.now):
            self.started += 1
        calls = []
        while self.next_call and self.next_call[0] <= self.now:
            calls.append(self.next_call)
            self.next_call = next(self.calls, None)
        while self.later and self.later[0][0] <= self.now:
            calls.append(heapq.heappop(self.later))
        return self.started - first, calls

    def run(self):
        while (at := self.first_arrival()) < self.until:
            self.now = max(self.now, at)
            starts, calls = self.take_arrived()
            self.backlog = max(self.backlog, starts + len(calls))
            # What one client has sent meanwhile is read at once.
            clients = self.load.clients
            senders = clients * (1 - (1 - 1 / clients) ** starts)
            self.work(self.costs.of("start", senders, starts))
            for _, kind, shard, count in calls:
                getattr(self, "on_" + kind)(shard, count)
            if self.now > self.until:
                break
        return self

    def follow(self, kind, shard, count):
        heapq.heappush(self.later, (self.now + 2 * HALF_ROUND_TRIP, kind,
                                    shard, count))

    def on_fire(self, shard, _):
        dues, first = self.dues[shard], self.fired[shard]
        last = first
        while (last < len(dues) and dues[last] <= self.now
               and last - first < MOST_FIRED):
            last += 1
        self.fired[shard] = last
        self.work(self.costs.of("fire", 1, last - first))
        if last - first == MOST_FIRED:
            self.follow("fire", shard, 0)
        if self.is_reading and last > first:
            self.give([shard])

    def on_read(self, *_):
        self.is_reading = True
        filled = [shard for shard in range(self.load.shards)
                  if self.fired[shard] > self.read[shard]]
        if filled:
            self.give(filled)

    def give(self, shards):
        """Answers the reading consumer."""
        given = []
        for shard in shards:
            last = min(self.fired[shard], self.read[shard] + MOST_READ)
            given.append((shard, self.read[shard], last))
            self.read[shard] = last
        self.work(self.costs.of("read", 1, sum(last - first
                                               for _, first, last in given)))
        for shard, first, last in given:
            self.lateness += (self.now + HALF_ROUND_TRIP - due
                              for due in self.dues[shard][first:last]
                              if due > WARM_UP)
            self.follow("answer", shard, last - first)
        self.is_reading = False
        self.follow("read", 0, 0)

    def on_answer(self, _, count):
        self.work(self.costs.of("answer", 1, count))
        self.ended += count if self.now > WARM_UP else 0

    def utilisation(self):
        return self.busy / (max(self.now, self.until) - WARM_UP)

    def us_per_timer(self):
        return 1e6 * self.busy / max(self.ended, 1)

    def late_ms(self, per_cent):
        """What was due and never given to the consumer is late without end."""
        missing = sum(itertools.chain.from_iterable(
            (WARM_UP < due < self.until - 0.1 for due in dues[read:])
            for dues, read in zip(self.dues, self.read)))
        late = sorted(self.lateness)
        at = round((len(late) + missing - 1) * per_cent / 100)
        return 1e3 * late[at] if 0 <= at < len(late) else math.inf
