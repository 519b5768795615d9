# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The slots of all classes and `due`: a model, its invariants, their proof.

A state has any number of timers. Of each it has the list that holds it (a slot,
`due`, a queue, none), the check, the deadline, and which timers of its list
come before which. The steps are those of src/timer. A callback may do anything,
so each step of the program may come between any two steps of an advance. What
decides in the code (conditions, checks, bits) is
taken from the code. Of slots.h the steps know only the theorems of
arithmetic.py.

Each invariant is proved to hold at the start and to survive each step. An
invariant speaks of one or two timers `t` and `u`, or of one slot `s`. That it
held before the step may be used for these, and for those of the step.
"""
import copy
import itertools

from goals import (Goal, Term, constants, infinity, last_time, never,
                   open_limit)

impl = "src/timer/lawn_impl.h"
advance = "src/timer/advance.cc"
next_time = "src/timer/next.cc"
header = "include/lawn/timer.h"
lawn = "src/timer/start.cc"

due, queue, nowhere = (f"(_ bv{1344 + i} 64)" for i in range(3))

state = [
    "(declare-sort Timer 0)",
    "(declare-fun where (Timer) (_ BitVec 64))",
    "(declare-fun check (Timer) (_ BitVec 64))",
    "(declare-fun deadline (Timer) (_ BitVec 64))",
    "(declare-fun before (Timer Timer) Bool)",
    "(declare-fun bit ((_ BitVec 64)) Bool)",
    "(declare-fun class_bit ((_ BitVec 32)) Bool)",
    "(declare-fun last ((_ BitVec 64)) (_ BitVec 64))",
    "(declare-fun done ((_ BitVec 64)) Bool)",
    *constants("u64", "now", "seen", "until", "round", "time", "wake",
               "due_check"),
    *constants("Bool", "busy"),
    *constants("Timer", "t", "u", "x"), *constants("u64", "s"),
    "(define-fun class ((s (_ BitVec 64))) (_ BitVec 32)"
    " ((_ extract 31 0) (bvlshr s (_ bv6 64))))",
]

kinds = {"c": "u32", "is_linked(timer)": "bool", "timer->link.next": "bool",
         "lawn->busy": "bool", "list_is_empty(&lawn->due)": "bool",
         "lawn->late": "bool", "lawn->observer": "bool"}


def timer_names(**terms):
    return {name: Term(text, kinds.get(name, "u64"))
            for name, text in terms.items()}


class State:
    """What the terms of a state are, after some changes."""

    def __init__(self):
        for name in ("where", "check", "deadline", "bit", "class_bit", "last",
                     "done"):
            setattr(self, name, lambda at, name=name: f"({name} {at})")
        self.before = lambda a, b: f"(before {a} {b})"
        for name in ("now", "seen", "until", "round", "time", "wake",
                     "due_check", "busy"):
            setattr(self, name, name)

    def with_(self, **changes):
        new = copy.copy(self)
        for name, value in changes.items():
            setattr(new, name, value)
        return new

    def set(self, name, at, value):
        old = getattr(self, name)
        return self.with_(**{
            name: lambda i: f"(ite (= {i} {at}) {value} {old(i)})"})

    def append(self, timer, where):
        old = self.before
        return self.set("where", timer, where).with_(
            before=lambda a, b: f"(ite (= {b} {timer}) (distinct {a} {timer})"
            f" (and (distinct {a} {timer}) {old(a, b)}))")

    def to_front(self, timer):
        old = self.before
        return self.with_(
            before=lambda a, b: f"(ite (= {a} {timer}) (distinct {b} {timer})"
            f" (and (distinct {b} {timer}) {old(a, b)}))")

    def names(self, timer="x", **more):
        """What the code calls them."""
        limit = f"(ite {self.busy} (_ bv0 64) {open_limit})"
        is_linked = f"(distinct {self.where(timer)} {nowhere})"
        return timer_names(**{
            "timer->deadline": self.deadline(timer),
            "timer->check": self.check(timer), "is_linked(timer)": is_linked,
            "timer->link.next": is_linked, "lawn->now": self.now,
            "lawn->done": self.seen, "lawn->round_time": self.until,
            "lawn->round_check": self.round, "lawn->pass_time": self.time,
            "lawn->wake": self.wake, "lawn->inline_limit": limit,
            "lawn->busy": self.busy, "lawn->due_check": self.due_check,
            **more})


def is_slot(where):
    return f"(bvult {where} (_ bv1344 64))"


def imply(*terms):
    return f"(=> (and {' '.join(terms[:-1])} true) {terms[-1]})"


def sits(s, time):
    """Whether a slot of index s begins at the time."""
    c = f"(class {s})"
    return (f"(and (begins {c} {time}) (= {s} (bvadd (bvmul (_ bv64 64)"
            f" ((_ zero_extend 32) {c})) (place {c} {time}))))")


def order(S, t, u):
    return [f"(distinct {t} {u})", f"(= {S.where(t)} {S.where(u)})"]


# name: what it speaks of, and what it says of a state
invariants = {
    "times": ("", lambda S:
              f"(and (bvule {S.seen} {S.until}) (bvule {S.until} {S.now})"
              f" (bvule {S.until} {last_time}) (bvule {open_limit} {S.round})"
              f" (bvule {S.round} {S.due_check}) (=> {S.busy}"
              f" (and (bvule {S.time} {S.now})"
              f" (bvule {S.time} {last_time}))))"),
    "check is a slot's begin, <= deadline": ("t", lambda S, t: imply(
        is_slot(S.where(t)), f"(and {sits(S.where(t), S.check(t))}"
        f" (bvule {S.check(t)} {S.deadline(t)}))")),
    "a timer's slot has its bit": ("t", lambda S, t: imply(
        is_slot(S.where(t)), S.bit(S.where(t)))),
    "a slot's class has its bit": ("s", lambda S, s: imply(
        is_slot(s), S.bit(s), S.class_bit(f"(class {s})"))),
    "a list is in one order": ("tu", lambda S, t, u: imply(
        *order(S, t, u), f"(distinct {S.where(t)} {nowhere})",
        f"(xor {S.before(t, u)} {S.before(u, t)})")),
    "checks do not decrease along a slot": ("tu", lambda S, t, u: imply(
        *order(S, t, u), is_slot(S.where(t)), S.before(t, u),
        f"(bvule {S.check(t)} {S.check(u)})")),
    "the last filed has the latest check": ("t", lambda S, t: imply(
        is_slot(S.where(t)),
        f"(bvule {S.check(t)} {S.last(S.where(t))})")),
    "the last filed is at most 64 slots ahead": ("s", lambda S, s: imply(
        is_slot(s), S.bit(s), f"(and {sits(s, S.last(s))}"
        f" (bvule {S.last(s)} {never}) (or (bvule {S.last(s)} {S.now})"
        f" (bvule (apart (class {s}) {S.now} {S.last(s)}) (_ bv64 64))))")),
    "no slot has a check <= done": ("t", lambda S, t: imply(
        is_slot(S.where(t)), f"(bvult {S.seen} {S.check(t)})")),
    "no bit stands for a slot begun by done": ("s", lambda S, s: imply(
        is_slot(s), S.bit(s), f"(bvult {S.seen} {S.last(s)})")),
    "a slot that is done has no check <= round_time": ("t", lambda S, t: imply(
        is_slot(S.where(t)), S.done(S.where(t)),
        f"(bvult {S.until} {S.check(t)})")),
    "a done slot's bit is for after round_time": ("s", lambda S, s: imply(
        is_slot(s), S.done(s), S.bit(s),
        f"(bvult {S.until} {S.last(s)})")),
    "wake <= every check, or deadline in due": ("t", lambda S, t: imply(
        f"(not {S.busy})", f"(and (=> {is_slot(S.where(t))}"
        f" (bvule {S.wake} {S.check(t)})) (=> (= {S.where(t)} {due})"
        f" (bvule {S.wake} {S.deadline(t)})))")),
    "due has only what is due, or paused": ("t", lambda S, t: imply(
        f"(= {S.where(t)} {due})",
        f"(or (bvule {S.deadline(t)} {S.now})"
        f" (= {S.deadline(t)} {infinity}))")),
    "checks in due and queues are 2^63 or more": ("t", lambda S, t: imply(
        f"(or (= {S.where(t)} {due}) (= {S.where(t)} {queue}))",
        f"(and (bvule {open_limit} {S.check(t)}) (or (= {S.where(t)} {queue})"
        f" (bvule {S.check(t)} {S.due_check})))")),
    "checks do not decrease along due": ("tu", lambda S, t, u: imply(
        *order(S, t, u), f"(= {S.where(t)} {due})", S.before(t, u),
        f"(bvule {S.check(t)} {S.check(u)})")),
}


class Step:
    """A change of the state, and when it may be made."""

    def __init__(self, name, guards, after, variables=(), timers=("x",),
                 slots=()):
        self.name = name
        self.guards = guards
        self.after = after
        self.variables = list(variables)
        self.timers = list(timers)
        self.slots = list(slots)


def hypotheses(S, timers, slots):
    """All invariants, for these timers and slots."""
    slots = [*slots, *(S.where(timer) for timer in timers)]
    for kind, says in invariants.values():
        for of in itertools.product(*(slots if each == "s" else timers
                                      for each in kind)):
            yield says(S, *of)


def goals(source):
    from slot_steps import consequences, pieces, steps
    S = State()
    initial = ["(= seen until now time (_ bv0 64))", "(not busy)",
               f"(= round due_check {open_limit})", f"(= (where t) {nowhere})",
               f"(= (where u) {nowhere})", "(not (bit s))"]
    for name, (kind, says) in invariants.items():
        of = {"": [], "t": ["t"], "tu": ["t", "u"], "s": ["s"]}[kind]
        yield Goal(f"lawn: at the start: {name}", state, initial, says(S, *of))
    yield from pieces(source)
    for step in steps(source, S):
        for name, (kind, says) in invariants.items():
            of = {"": [], "t": ["t"], "tu": ["t", "u"], "s": ["s"]}[kind]
            timers = [*of, *step.timers] if kind != "s" else step.timers
            slots = [*step.slots, *(["s"] if kind == "s" else [])]
            yield Goal(f"lawn: {step.name}: {name}", state + step.variables,
                       [*hypotheses(S, timers, slots), *step.guards],
                       says(step.after, *of))
        # A step that could never be made would keep everything.
        yield Goal(f"lawn: {step.name}: can happen", state + step.variables,
                   [*hypotheses(S, step.timers, step.slots), *step.guards],
                   "true", is_possible=True)
    yield from consequences(source, S)
