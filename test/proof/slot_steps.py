# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The steps of slots.py, as the code makes them, and what follows."""
from arithmetic import is_no_later, stays_near
from goals import Goal, class_count, constants, infinity, never, open_limit
from slots import (Step, advance, due, header, hypotheses, impl, is_slot, lawn,
                   next_time, nowhere, queue, state, timer_names)

new_deadline = constants("u64", "d")
# A timer is filed in class c with the check b: theorems of arithmetic.py.
filed = [*constants("u32", "c"), *constants("u64", "b"),
         "(define-fun index () (_ BitVec 64) (bvadd (bvmul (_ bv64 64)"
         " ((_ zero_extend 32) c)) (place c b)))"]
is_filed = [f"(bvult c (_ bv{class_count} 32))", "(begins c b)",
            "(bvule b d)", "(bvult now b)",
            "(bvule (apart c now b) (_ bv64 64))",
            is_no_later("now", "b", "(last index)")]
round_ = ["busy", "(bvult seen until)"]
class_break = (impl, "each_slot", "lowest_bit(classes); if (@) { break; }")
slot_break = (impl, "each_slot", "lawn->done); if (@) { break; }")


def condition(source, names, *place):
    return source.term(source.quote(*place), names).to("bool").text


def value(source, names, *place):
    return source.term(source.quote(*place), names).to("u64").text


def pieces(source):
    """What single lines of the code do, for what the steps assume of them."""
    words = [*constants("u64", "now", "d", "filled", "occupied", "b", "slot"),
             *constants("u32", "c", "other")]
    names = timer_names(**{
        "timer->deadline": "d", "lawn->now": "now", "lawn->filled[c]": "filled",
        "lawn->occupied": "occupied", "slot": "slot", "c": "c"})
    in_class = [f"(bvult c (_ bv{class_count} 32))",
                f"(bvult other (_ bv{class_count} 32))"]
    number = value(source, names, impl, "file_in_class",
                   "const lawn_time_t slot = @;")
    c = source.term(
        source.quote(impl, "file", "file_in_class(lawn, timer, @);"),
        names).to("u32").text
    yield Goal("lawn: file() files by the class of what is left, and the slot"
               " of the deadline", words, [], f"(and (= {c} (class_of"
               f" (bvsub d now))) (= {number} (slot_of c d)))")
    to_due = condition(source, names, impl, "file", "if (LAWN_LIKELY(@)) {")
    yield Goal("lawn: file() files in a class what is not due yet, else in due",
               words, [], f"(= {to_due} (bvult now d))")
    index = value(source, names, impl, "file_in_class",
                  "&lawn->slots[@];")
    yield Goal("lawn: file_in_class() appends to the slot's list", words,
               in_class, f"(= {index} (index_of ((_ zero_extend 32) c) slot))")
    bits = value(source, names, impl, "file_in_class",
                 "lawn->filled[c] |= @;")
    classes = value(source, names, impl, "file_in_class",
                    "lawn->occupied |= @;")
    yield Goal("lawn: file_in_class() sets the bits of slot and class alone",
               words, in_class,
               f"(and (= {bits} (bit_of slot))"
               " (distinct (bvor filled (bit_of slot)) (_ bv0 64))"
               f" (= {classes} (bvshl (_ bv1 64) ((_ zero_extend 32) c))))")
    cleared = value(source, timer_names(index="slot"), impl,
                    "clear_if_empty", "lawn->filled[c] &= @;")
    unoccupied = value(
        source, timer_names(**{"lawn->filled[c]": f"(bvand filled {cleared})",
                               "c": "c"}),
        impl, "clear_if_empty", "lawn->occupied &= @;")
    wide = "((_ zero_extend 32) {})".format
    yield Goal("lawn: clear_if_empty() clears the slot's bit alone, and the"
               " class's with its last", words, in_class,
               f"(and (= {cleared} (bvnot (bit_of slot)))"
               f" (= (has (bvand occupied {unoccupied}) {wide('other')})"
               f" (and (has occupied {wide('other')})"
               f" (or (distinct other c) (distinct (bvand filled {cleared})"
               " (_ bv0 64))))))")


    capped = value(source, timer_names(deadline="d"), lawn, "announce_start",
                   "deadline = @;")
    yield Goal("lawn: a start is due no later than what never comes", words, [],
               f"(= {capped} (ite (bvult d {never}) d {never}))")


def program_steps(source, S):
    """What a program may call at any time, also in callbacks."""
    later = constants("u64", "later")
    latest = value(source, timer_names(**{"lawn->now": "now", "now": "later"}),
                   header, "lawn_see", "const lawn_time_t latest = @;")
    yield Step("lawn_see()", ["(= c (class s))",
                              stays_near("now", latest, "(last s)")],
               S.with_(now=latest), later + constants("u32", "c"), [])
    d = S.names(deadline="d")
    yield Step("inline re-arm", [condition(
        source, d, header, "lawn_timer_start_at", "if (LAWN_LIKELY(@)) {")],
        S.set("deadline", "x", "d"), new_deadline)
    capped = value(source, d, lawn, "announce_start", "deadline = @;")
    d = S.names(deadline=capped)
    yield Step("re-arm while closed", [condition(
        source, d, lawn, "start_closed",
        "if (@) { lawn->running += is_paused")],
        S.set("deadline", "x", capped), new_deadline)
    # From here on the timer may have been in any list.
    wake = condition(source, S.names(check="b"), impl, "file_in_class",
                     "if (LAWN_UNLIKELY(@)) {")
    woken = S.with_(wake=f"(ite {wake} b wake)")

    def file(name, guards):
        return Step(name, guards,
                    woken.set("deadline", "x", "d").set("check", "x", "b")
                    .append("x", "index").set("bit", "index", "true")
                    .set("class_bit", "c", "true").set("last", "index", "b"),
                    new_deadline + filed, ["x"], ["index"])

    yield file("file in a class", is_filed + [f"(bvule d {never})"])
    file_never = condition(source, S.names(**{"timer->deadline": "d"}), lawn,
                           "file_due", "if (@) {")
    yield file("file what never comes", [
        "(= c (_ bv0 32))", "(= b d)", "(bvule d now)", file_never])
    earlier = value(source, S.names(**{"timer->deadline": "d"}), lawn,
                    "file_due", "set_wake(lawn, @);")
    number = value(source, S.names(), lawn, "file_due", "timer->check = @;")
    yield Step("file in due", ["(bvule d now)", f"(not {file_never})",
                               f"(bvule d {never})"],
               S.with_(wake=earlier).set("deadline", "x", "d")
               .set("check", "x", number).append("x", due), new_deadline)
    # queues.py has more about it.
    yield Step("start in a queue", [f"(bvule {open_limit} n)"],
               S.set("deadline", "x", "d").set("check", "x", "n")
               .append("x", queue), new_deadline + constants("u64", "n"))
    yield Step("stop, expiry", [], S.set("where", "x", nowhere))
    yield Step("pause", [f"(distinct (where x) {nowhere})"],
               S.set("deadline", "x", infinity))


def done_steps(source, S):
    """A slot `z` of a round is done: its class or itself is left out, or its
    first timer is not up, or it has none."""
    slot = constants("u64", "z", "occupied", "bits", "first")
    is_round = [*round_, is_slot("z")]
    done = S.set("done", "z", "true")
    classes = value(source, timer_names(**{"lawn->occupied": "occupied"}),
                    impl, "each_slot", "uint64_t classes = @;")
    number = "((_ zero_extend 32) (class z))"
    yield Step("a class is left out", [
        *is_round, f"(= (has occupied {number}) (class_bit (class z)))",
        f"(not (has {classes} {number}))"], done, slot, ["x"], ["z"])
    end = value(source, S.names(), advance, "work_round",
                "const lawn_time_t end = @;")
    stops = condition(source, {**S.names(), **timer_names(end=end, c="c")},
                      *class_break)
    yield Step("the classes from one on are left out", [
        *is_round, "(bvule c (class z))", stops],
        done, slot + constants("u32", "c"), ["x"], ["z"])
    place = "(bvand z (_ bv63 64))"
    bits = value(source, timer_names(**{"lawn->filled[c]": "bits"}), impl,
                 "each_slot", "uint64_t bits = @;")
    is_bit = f"(= (has bits {place}) (bit z))"
    yield Step("a slot is left out", [
        *is_round, is_bit, f"(not (has {bits} {place}))"],
        done, slot, ["x"], ["z"])
    # first_begin() is no later than any slot of the bits: a theorem, of which
    # these are cases.
    is_least = [
        f"(=> (and (begins (class z) {b}) (= (place (class z) {b}) {place})"
        f" (bvult seen {b})) (bvule first {b}))"
        for b in ("(check t)", "(check x)", "(last z)")]
    stops = condition(source, timer_names(begin="first", end=end), *slot_break)
    yield Step("the slots from one on are left out", [
        *is_round, "(bit z)", *is_least, stops], done, slot, ["x"], ["z"])
    is_up = condition(source, timer_names(**{
        "timer_of(link)->check": "(check x)", "until": "until"}), advance,
        "is_up", "return link != slot && @;")
    is_first = ["(= (where x) z)", "(=> (and (= (where t) z) (distinct t x))"
                " (before x t))", "(bvule (check x) (last z))"]
    yield Step("the first of a slot is not up", [
        *is_round, *is_first, f"(not {is_up})"], done, slot, ["x"], ["z"])
    is_empty = ["(distinct (where t) z)", "(distinct (where u) z)",
                "(distinct (where x) z)"]
    k = constants("Bool", "k")
    # The class keeps its bit if another of its slots has one.
    others = "(=> (and (bit s) (distinct s z) (= (class s) (class z))) k)"
    yield Step("a slot is empty", [*is_round, *is_empty, others],
               done.set("bit", "z", "false").set(
                   "class_bit", "(class z)", "(and (class_bit (class z)) k)"),
               slot + k, ["x"], ["z", "s"])


def advance_steps(source, S):
    """The parts of an advance."""
    asked = constants("u64", "asked")
    time = value(source, timer_names(now="asked"), advance, "advance_slow",
                 "lawn->pass_time = @;")
    yield Step("an advance begins", [
        "(not busy)", "(bvule asked now)", f"(bvult due_check {infinity})"],
        S.with_(time=time, busy="true",
                due_check="(bvadd due_check (_ bv1 64))"), asked, [])
    begins = condition(source, S.names(), advance, "advance_slow",
                       "if (@ || work_round(lawn)) {")
    until = value(source, S.names(), advance, "advance_slow",
                  "lawn->round_time = @;")
    number = value(source, S.names(), advance, "advance_slow",
                   "lawn->round_check = @;")
    yield Step("a round begins or goes on", ["busy"],
               S.with_(until=f"(ite {begins} {until} until)",
                       round=f"(ite {begins} {number} round)",
                       done=lambda s: "false"), (), [])
    yield from done_steps(source, S)
    all_done = [f"(=> {is_slot(s)} (done {s}))"
                for s in ("(where t)", "(where u)", "s")]
    seen = value(source, S.names(), advance, "work_round", "lawn->done = @;")
    yield Step("a round ends", [*round_, *all_done], S.with_(seen=seen), (), [])
    check = value(source, {}, "src/timer/queue.cc", "on_alarm",
                  "alarm->check = @;")
    yield Step("an alarm goes to the front of due", ["busy"],
               S.set("deadline", "x", "(_ bv0 64)").set("check", "x", check)
               .append("x", due).to_front("x"))
    # first_slot() is no later than any check: a theorem further below.
    names = {"list_is_empty(&lawn->due)": "is_empty"}
    bound = value(source, {**S.names(**names), **timer_names(**{
        "first_slot(lawn)": "first"})}, next_time, "deadline_bound",
        "return @;")
    wake = value(source, timer_names(**{"deadline_bound(lawn)": bound}),
                 next_time, "reopen", "set_wake(lawn, @);")
    yield Step("an advance ends", [
        "busy", *(f"(=> {is_slot(f'(where {t})')} (bvule first (check {t})))"
                  for t in ("t", "x")),
        *(f"(=> is_empty (distinct (where {t}) {due}))" for t in ("t", "x"))],
        S.with_(busy="false", wake=wake),
        [*constants("u64", "first"), *constants("Bool", "is_empty")])


def steps(source, S):
    yield from program_steps(source, S)
    yield from advance_steps(source, S)


def consequences(source, S):
    """What the invariants are for."""
    known = [*hypotheses(S, ["t", "x"], ["s"])]
    names = {**S.names("t"), **timer_names(**{
        "lawn->late": "late", "lawn->observer": "observer"})}
    told = constants("Bool", "late", "observer")
    plain = value(source, names, advance, "advance_slow", "lawn->quiet_until = @;")
    names.update(timer_names(**{"lawn->quiet_until": plain}))
    fires = condition(source, names, impl, "touch",
                      "if (LAWN_LIKELY(@)) {")
    fires_told = condition(source, names, advance, "touch_slow",
                           "if (@) { end_run")
    yield Goal("lawn: NEVER EARLY: what is touched fires if and only if its"
               " deadline is at or before the advance's time", state + told,
               [*known, "busy"], f"(= (or {fires} {fires_told})"
               " (bvule (deadline t) time))")
    is_up = condition(source, timer_names(**{
        "timer_of(link)->check": "(check t)", "until": "until"}), advance,
        "is_up", "return link != slot && @;")
    yield Goal("lawn: what is filed in a round is not part of it",
               state + new_deadline + filed, [*known, *is_filed, *round_],
               "(bvult until b)")
    yield Goal("lawn: a timer of the round is taken from its slot", state,
               [*known, *round_, is_slot("(where t)"),
                "(bvule (deadline t) until)"], is_up)
    until = value(source, {**S.names(), **timer_names(**{
        "lawn->done": "was"})}, advance, "advance_slow", "lawn->round_time = @;")
    yield Goal("lawn: NEVER LOST: when the last round has ended, no slot has a"
               " timer that is due", state + constants("u64", "was"),
               [*known, "busy", f"(= seen {until})", is_slot("(where t)")],
               "(bvult time (deadline t))")
    left = condition(source, {**S.names(), **timer_names(**{
        "timer_of(due->next)->check": "(check x)"})}, advance, "work_due",
        "while (!list_is_empty(due) && @) {")
    in_due = [f"(= (where x) {due})", f"(= (where t) {due})",
              "(=> (distinct t x) (before x t))"]
    yield Goal("lawn: NEVER LOST: when due's first is not of the round, nothing"
               " in due is", state, [*known, *in_due, f"(not {left})"],
               "(bvule round (check t))")
    number = value(source, S.names(), advance, "advance_slow",
                   "lawn->round_check = @;")
    yield Goal("lawn: NEVER LOST: all in due is of the last round, or was put"
               " there in this advance", state, [
                   *known, f"(= round {number})", f"(= (where t) {due})",
                   "(bvule round (check t))"], "(= (check t) due_check)")
    skips = condition(source, timer_names(**{
        "lawn_see(lawn,now)": "later", "lawn->next": "wake"}), header,
        "lawn_advance", "return LAWN_LIKELY(@) ?")
    yield Goal("lawn: NEVER LOST: an advance that is skipped has nothing due",
               state + constants("u64", "later"),
               [*known, "(not busy)", skips,
                f"(or {is_slot('(where t)')} (= (where t) {due}))"],
               "(bvult later (deadline t))")
    yield from first_slot(source, S, known)


def first_slot(source, S, known):
    """The loop of first_slot(): its invariant and what it returns.

    Invariant: `first` is no later than any check of a class below c. Classes
    without a bit hold no timer.
    """
    variables = [*state, *constants("u64", "first", "least"),
                 *constants("u32", "c")]
    names = {**S.names(), **timer_names(end="first", begin="least", c="c")}
    found = [*known, is_slot("(where t)"),
             f"(bvult c (_ bv{class_count} 32))",
             "(=> (bvult (class (where t)) c) (bvule first (check t)))"]
    term = source.term(source.quote(*class_break), names)
    stops = term.text
    # A class that is occupied has a slot with its bit set, called s here.
    occupied = [is_slot("s"), "(bit s)", "(= (class s) c)"]
    yield Goal("lawn: first_slot() is well defined", variables,
               [*found, *occupied], f"(and {' '.join(term.ok)} true)")
    yield Goal("lawn: first_slot() stops when no later class has an earlier"
               " slot", variables, [*found, *occupied, stops],
               "(bvule first (check t))")
    skips = condition(source, names, *slot_break)
    visited = value(source, names, next_time, "first_slot", "{ first = @;")
    yield Goal("lawn: first_slot() takes each class into account", variables,
               [*found, *occupied,
                "(=> (= (class (where t)) c) (bvule least (check t)))"],
               f"(=> (bvule (class (where t)) c) (bvule (ite {skips} first"
               f" {visited}) (check t)))")
