# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""A TTL queue and its alarm: a model, its invariants, their proof.

As in slots.py, a state has any number of timers, and each step of the program
may come between any two steps of an advance. The alarm is a timer of the lawn:
slots.py shows that it fires when it is due. Several queues of a lawn have
nothing in common but its time.
"""
import itertools

from goals import Goal, constants, infinity, last_time, never, open_limit
from slots import State as LawnState, imply, timer_names

file = "src/timer/queue.cc"
header = "include/lawn/queue.h"

state = [
    "(declare-sort Timer 0)",
    "(declare-fun inside (Timer) Bool)",
    "(declare-fun check (Timer) (_ BitVec 64))",
    "(declare-fun deadline (Timer) (_ BitVec 64))",
    "(declare-fun before (Timer Timer) Bool)",
    *constants("u64", "now", "ttl", "time", "alarm", "due_check"),
    *constants("Bool", "busy", "firing", "linked"),
    *constants("Timer", "t", "u", "x", "h"),
]


class State(LawnState):
    def __init__(self):
        for name in ("inside", "check", "deadline"):
            setattr(self, name, lambda at, name=name: f"({name} {at})")
        self.before = lambda a, b: f"(before {a} {b})"
        for name in ("now", "time", "alarm", "due_check", "busy", "firing",
                     "linked"):
            setattr(self, name, name)

    def start(self, timer, deadline, check):
        old = self.before
        return (self.set("inside", timer, "true")
                .set("deadline", timer, deadline).set("check", timer, check)
                .with_(before=lambda a, b: f"(ite (= {b} {timer})"
                       f" (distinct {a} {timer}) (and (distinct {a} {timer})"
                       f" {old(a, b)}))"))

    def latest(self):
        """The deadline of a timer that would be started now."""
        total = f"(bvadd {self.now} ttl)"
        return (f"(ite (or (bvult {total} ttl) (bvugt {total} {never}))"
                f" {never} {total})")

    def paused(self, t):
        return f"(= {self.deadline(t)} {infinity})"

    def is_first(self, h, timers):
        return [self.inside(h), *(imply(
            f"(distinct {t} {h})", self.inside(t), self.before(h, t))
            for t in timers)]

    def of(self, timer, **more):
        return timer_names(**{
            "timer->deadline": self.deadline(timer),
            "timer->check": self.check(timer), "lawn->pass_time": self.time,
            "lawn->now": self.now, "queue->ttl": "ttl",
            "lawn->due_check": self.due_check,
            "lawn->inline_limit": f"(ite {self.busy} (_ bv0 64) {open_limit})",
            **more})


def both(S, t, u):
    return [f"(distinct {t} {u})", S.inside(t), S.inside(u)]


invariants = {
    "times": ("", lambda S:
              f"(and (bvule {open_limit} {S.due_check})"
              f" (=> {S.busy} (and (bvule {S.time} {S.now})"
              f" (bvule {S.time} {last_time}))))"),
    "a queue fires in an advance, and its alarm is set": ("", lambda S: imply(
        S.firing, f"(and {S.busy} {S.linked})")),
    "the alarm is no later than any deadline": ("t", lambda S, t: imply(
        S.inside(t), f"(and {S.linked} (bvule {S.alarm} {S.deadline(t)}))")),
    "the alarm is no later than the next start's deadline": ("", lambda S:
        imply(S.linked, f"(bvule {S.alarm} {S.latest()})")),
    "it is in one order": ("tu", lambda S, t, u: imply(
        *both(S, t, u), f"(xor {S.before(t, u)} {S.before(u, t)})")),
    "deadlines do not decrease along a queue": ("tu", lambda S, t, u: imply(
        *both(S, t, u), S.before(t, u), f"(not {S.paused(t)})",
        f"(bvule {S.deadline(t)} {S.deadline(u)})")),
    "no deadline is later than the next start's": ("t", lambda S, t: imply(
        S.inside(t), f"(not {S.paused(t)})",
        f"(bvule {S.deadline(t)} {S.latest()})")),
    "checks are 2^63 or more": ("t", lambda S, t: imply(
        S.inside(t), f"(and (bvule {open_limit} {S.check(t)})"
        f" (or (bvule {S.check(t)} {S.due_check})"
        f" (= {S.check(t)} {infinity})))")),
    "what is new is last": ("tu", lambda S, t, u: imply(
        *both(S, t, u), S.busy, S.before(t, u),
        f"(= {S.check(t)} {S.due_check})",
        f"(= {S.check(u)} {S.due_check})")),
}

speaks_of = {"": [], "t": ["t"], "tu": ["t", "u"]}


def hypotheses(S, timers=("t", "u", "x", "h")):
    for kind, says in invariants.values():
        for of in itertools.product(timers, repeat=len(kind)):
            yield says(S, *of)


def steps(source, S):
    """Name, variables, guards and state afterwards of each step."""
    def value(place, names, pattern, kind="u64"):
        return source.term(source.quote(*place, pattern), names).to(kind).text

    timers = ("t", "u", "x", "h")
    yield ("lawn_see()", constants("u64", "later"), ["(bvule now later)"],
           S.with_(now="later"))
    rest = (file, "lawn_queue_start_slow")
    total = value(rest, S.of("x"), "announce_start(lawn, timer, @));")
    deadline = value(("src/timer/start.cc", "announce_start"),
                     timer_names(deadline=total), "deadline = @;")
    start = S.start("x", deadline,
                    value(rest, S.of("x"), "timer->check = @;"))
    yield "start", [], ["linked"], start

    def alarmed(new):
        names = {**timer_names(**{"head->deadline": new.deadline("h")}),
                 "is_paused(head)": source.term(
                     ["is"], {"is": bool_term(new.paused("h"))})}
        return new.with_(linked="true", alarm=value(
            (file, "set_alarm"), names, "alarm->deadline = @;"))

    yield ("start that sets the alarm", [],
           ["(not linked)", *start.is_first("h", timers)],
           alarmed(start))
    place = (header, "lawn_queue_start")
    deadline = value(place, S.of("x", latest="now"),
                     "const lawn_time_t deadline = @;").replace(
                         "queue->ttl", "ttl")
    rejected = value(place, S.of("x", deadline=deadline, latest="now"),
                     "if (LAWN_UNLIKELY(@ || last == & queue->timers ||",
                     "bool")
    yield ("inline start", [], [
        f"(not {rejected})", "(inside h)", "(distinct h x)"],
        S.start("x", deadline, value(place, S.of("x"), "timer->check = @;")))
    yield ("stop, expiry, start elsewhere", [], [],
           S.set("inside", "x", "false"))
    yield "pause", [], ["(inside x)"], S.set("deadline", "x", infinity)
    fired = value(("src/timer/lawn_impl.h", "end_run"), {},
                  "timer->deadline = @;")
    yield ("the alarm fires, and stays", [], ["busy", "linked"],
           S.with_(alarm=fired, firing="true"))
    yield ("the queue has fired, and its turn goes on", [], ["firing"],
           S.with_(firing="false"))
    yield ("the queue has fired and is empty", [],
           ["firing", *(f"(not (inside {t}))" for t in timers)],
           S.with_(linked="false", firing="false"))
    yield ("the queue has fired and sets the alarm", [],
           ["firing", *S.is_first("h", timers)],
           alarmed(S.with_(firing="false")))
    yield ("an advance begins", constants("u64", "asked"),
           ["(not busy)", "(bvule asked now)", f"(bvule asked {last_time})",
            f"(bvult due_check {never})"],
           S.with_(busy="true", time="asked",
                   due_check="(bvadd due_check (_ bv1 64))"))
    yield ("an advance ends", [], ["busy", "(not firing)"],
           S.with_(busy="false"))


def bool_term(text):
    return timer_names(**{"is_linked(timer)": text})["is_linked(timer)"]


def goals(source):
    S = State()
    for name, (kind, says) in invariants.items():
        yield Goal(f"queue: at the start: {name}", state, [
            "(not busy)", "(not linked)", "(not firing)", "(not (inside t))",
            f"(= due_check {open_limit})"], says(S, *speaks_of[kind]))
    for step, variables, guards, after in steps(source, S):
        known = [*hypotheses(S), *guards]
        for name, (kind, says) in invariants.items():
            yield Goal(f"queue: {step}: {name}", state + variables, known,
                       says(after, *speaks_of[kind]))
        yield Goal(f"queue: {step}: can happen", state + variables, known,
                   "true", is_possible=True)
    yield from consequences(source, S)


def consequences(source, S):
    known = list(hypotheses(S))
    names = {**S.of("h"), **timer_names(**{
        "head->deadline": S.deadline("h"), "first->check": S.check("h")}),
        "is_paused(head)": bool_term(S.paused("h"))}
    is_due = source.term(source.quote(
        file, "has_work", "return head && (@);"), names).to("bool").text
    is_new = source.term(source.quote(
        "src/timer/lawn_impl.h", "first_old", "|| @ ? nullptr"),
        names).to("bool").text
    stops = f"(or {is_new} (not {is_due}))"
    first = [*known, "firing", *S.is_first("h", ("t", "u", "x", "h"))]
    yield Goal("queue: IN ORDER: what fires is due no later than all behind it",
               state, [*first, "(inside t)", f"(not {S.paused('h')})"],
               "(bvule (deadline h) (deadline t))")
    yield Goal("queue: NEVER EARLY: what is taken from a queue is due, or was"
               " paused", state, [*first, f"(not {stops})"],
               f"(or {S.paused('h')} (bvule (deadline h) time))")
    yield Goal("queue: NEVER LOST: what a queue leaves is not due, or was"
               " started in this advance", state,
               [*first, stops, "(inside t)"],
               "(or (bvult time (deadline t)) (= (check t) due_check))")
    yield Goal("queue: NEVER LOST: if a timer is due, the alarm is set and due",
               state, [*known, "(inside t)", "(bvule (deadline t) time)"],
               "(and linked (bvule alarm time))")
    inline = source.term(
        source.quote("include/lawn/timer.h", "lawn_timer_start_at",
                     "if (LAWN_LIKELY(timer->link.next && @)) {"),
        S.of("h", deadline="d")).to("bool").text
    yield Goal("queue: no inline re-arm changes a deadline in a queue",
               state + constants("u64", "d"), [*known, "(inside h)"],
               f"(not {inline})")
