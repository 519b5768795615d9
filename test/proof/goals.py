# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Goals, and the prover that decides them.

A goal is proved if its hypotheses and the opposite of its conclusion cannot be
true together. There are no quantifiers: what is true of all times, or of all
timers, is shown for constants of which nothing else is known.
"""
import resource
import subprocess

from source import Error, Source, Term, prelude

infinity = "#xffffffffffffffff"
never = "#xfffffffffffffffe"
last_time = "#xfffffffffffffffd"  # the latest time of an advance
open_limit = "#x8000000000000000"
class_count = 21

provers = {"z3": ["z3", "-in"], "cvc5": ["cvc5", "--lang=smt2"]}
most_seconds = 120  # of processor time, for a goal; most take 0.1


class Goal:
    """A theorem, or, if `is_possible`, the claim that something can be."""

    def __init__(self, name, variables, hypotheses, conclusion,
                 is_possible=False):
        self.name = name
        self.variables = variables  # lines of SMT-LIB
        self.hypotheses = hypotheses
        self.conclusion = conclusion
        self.is_possible = is_possible

    def script(self, definitions):
        is_words = not any("declare-fun" in line for line in self.variables)
        logic = "QF_BV" if is_words else "QF_UFBV"
        # What would contradict it, or be an instance of it.
        wanted = (self.conclusion if self.is_possible
                  else f"(not {self.conclusion})")
        return "\n".join([
            f"(set-logic {logic})", definitions, *self.variables,
            *[f"(assert {text})" for text in [*self.hypotheses, wanted]],
            "(check-sat)"])

    def decide(self, prover, definitions):
        """Whether the goal is proved, refuted, or neither (undecided)."""
        answers = {"unsat": "proved", "sat": "refuted"}
        if self.is_possible:
            answers = {"sat": "proved", "unsat": "refuted"}
        done = subprocess.run(
            provers[prover], input=self.script(definitions), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_CPU, (most_seconds, most_seconds)))
        if "error" in done.stdout:
            raise Error(f"{self.name}: {done.stdout.strip()[:2000]}")
        return answers.get(done.stdout.strip(), "undecided")


def constants(kind, *names):
    sort = {"u64": "(_ BitVec 64)", "u32": "(_ BitVec 32)"}.get(kind, kind)
    return [f"(declare-const {name} {sort})" for name in names]


def definitions_of(source):
    """The library's arithmetic, and what the statements say with it."""
    slots = "src/timer/slots.h"
    source.constants.update({
        "LAWN_TIME_INFINITY": Term(infinity, "u64"),
        "never": Term(never, "u64"), "open_limit": Term(open_limit, "u64")})
    source.read_constants(slots)
    return "\n".join([
        prelude(),
        source.functions(slots, [
            "highest_bit", "lowest_bit", "class_of", "shift_of", "slot_of",
            "index_of", "bit_of", "rotate_right", "first_begin"]),
        source.functions("src/base/ticks.h",
                         ["add_saturating", "earlier_of", "later_of"]),
        # These are the proof's own words. They do not use the library's, apart
        # from the number of octaves in a class: a slot of class c is 8^c wide.
        "(define-fun width ((c (_ BitVec 32))) (_ BitVec 64)"
        " (bvshl (_ bv1 64) ((_ zero_extend 32) (bvmul (_ bv3 32) c))))",
        # Whether a slot of class c begins at b, and which of 64 it is.
        "(define-fun begins ((c (_ BitVec 32)) (b (_ BitVec 64))) Bool"
        " (= (bvand b (bvsub (width c) (_ bv1 64))) (_ bv0 64)))",
        "(define-fun place ((c (_ BitVec 32)) (b (_ BitVec 64)))"
        " (_ BitVec 64) (bvand (bvlshr b ((_ zero_extend 32)"
        " (bvmul (_ bv3 32) c))) (_ bv63 64)))",
        "(define-fun has ((bits (_ BitVec 64)) (i (_ BitVec 64))) Bool"
        " (distinct (bvand bits (bvshl (_ bv1 64) i)) (_ bv0 64)))",
        # The distance of the slots of two times, the first no later.
        "(define-fun apart ((c (_ BitVec 32)) (a (_ BitVec 64))"
        " (b (_ BitVec 64))) (_ BitVec 64) (bvsub"
        " (bvlshr b ((_ zero_extend 32) (bvmul (_ bv3 32) c)))"
        " (bvlshr a ((_ zero_extend 32) (bvmul (_ bv3 32) c)))))",
    ])


__all__ = ["Error", "Goal", "Source", "Term", "class_count", "constants",
           "definitions_of", "infinity", "last_time", "never", "open_limit",
           "provers"]
