# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Theorems about src/timer/slots.h, for all 64-bit times.

`now`, `deadline`, `from` and `to` are any times. `b` is the beginning of any
slot. Where a function is proved to be well defined, no shift in it is too far
and no sum, difference or product wraps around.
"""
from goals import Goal, class_count, constants, infinity, last_time


def goals(source):
    files = [*constants("u64", "now", "deadline"),
             "(define-fun ttl () (_ BitVec 64) (bvsub deadline now))",
             "(define-fun c () (_ BitVec 32) (class_of ttl))",
             "(define-fun slot () (_ BitVec 64) (slot_of c deadline))",
             f"(define-fun b () (_ BitVec 64) {check_of(source)})"]

    def file(name, text):
        return Goal(f"slots: {name}", files, ["(bvult now deadline)"], text)

    yield file("a TTL has one of the 21 classes, well defined",
               f"(and (ok_class_of ttl) (bvult c (_ bv{class_count} 32)))")
    yield file("a slot is at most an eighth as wide as the TTL, or one tick",
               "(or (= c (_ bv0 32)) (bvule (width c)"
               " (bvlshr ttl (_ bv3 64))))")
    yield file("the check is the beginning of a slot",
               "(and (ok_slot_of c deadline) (begins c b))")
    yield file("the check is at or before the deadline, by less than a slot",
               "(and (bvule b deadline)"
               " (bvult (bvsub deadline b) (width c)))")
    yield file("the check is after the time of the start",
               "(bvult now b)")
    yield file("a timer lies 1 to 64 slots ahead",
               "(and (bvule (_ bv1 64) (apart c now b))"
               " (bvule (apart c now b) (_ bv64 64)))")
    yield file("its index is that of its slot, and below 1344",
               "(and (ok_index_of ((_ zero_extend 32) c) slot)"
               " (= (index_of ((_ zero_extend 32) c) slot) (bvadd"
               " (bvmul (_ bv64 64) ((_ zero_extend 32) c)) (place c b)))"
               " (bvult (index_of ((_ zero_extend 32) c) slot)"
               " (_ bv1344 64)))")
    yield file("its bit is that of its slot alone",
               "(and (ok_bit_of slot)"
               " (= (bit_of slot) (bvshl (_ bv1 64) (place c b))))")
    yield from circle()
    yield from first()
    yield Goal("times: a sum saturates", constants("u64", "a", "b"), [],
               "(and (ok_add_saturating a b) (= (add_saturating a b) (ite"
               " (bvult (bvadd a b) a)"
               f" {infinity} (bvadd a b))))")


def may_lie(now, last):
    """Whether a slot may hold a timer: it lies up to 64 ahead."""
    return (f"(or (bvule {last} {now})"
            f" (bvule (apart c {now} {last}) (_ bv64 64)))")


def is_no_later(now, begin, last):
    """Of one index, what is filed now is behind all that may be there."""
    return (f"(=> (and (begins c {begin}) (begins c {last})"
            f" (= (place c {begin}) (place c {last})) (bvult {now} {begin})"
            f" (bvule (apart c {now} {begin}) (_ bv64 64))"
            f" {may_lie(now, last)}) (bvule {last} {begin}))")


def stays_near(now, later, last):
    return (f"(=> (and (bvule {now} {later}) {may_lie(now, last)})"
            f" {may_lie(later, last)})")


def circle():
    """64 slots are enough."""
    variables = [*constants("u32", "c"),
                 *constants("u64", "now", "later", "begin", "last")]
    is_class = [f"(bvult c (_ bv{class_count} 32))"]
    yield Goal("slots: of one index, no timer up to 64 slots ahead has a later"
               " check than one that is filed", variables, is_class,
               is_no_later("now", "begin", "last"))
    yield Goal("slots: what is up to 64 slots ahead stays so as time goes on",
               variables, is_class, stays_near("now", "later", "last"))


# The functions of a span of time are proved for slots of one tick (class 0),
# where a time is the number of its slot, and then reduced to these: the result
# is that for the numbers of the slots, and these are ordered as the times are.

zero = "(_ bv0 32)"


def first():
    bits = [*constants("u64", "bits", "from", "b"),
            f"(define-fun first () (_ BitVec 64) (first_begin {zero} bits"
            " from))"]
    is_in = ["(bvult from b)", "(has bits (bvand b (_ bv63 64)))",
             f"(bvult b {infinity})"]
    classes = constants("u32", "c")
    is_class = [f"(bvult c (_ bv{class_count} 32))"]
    yield Goal("slots: first_begin() is well defined if there is a slot",
               bits + classes, [*is_class, "(begins c b)", "(bvult from b)",
                                "(has bits (place c b))",
                                f"(bvult b {infinity})"],
               "(ok_first_begin c bits from)")
    yield Goal("slots: first_begin() is a slot of the bits after `from`", bits,
               is_in,
               "(and (bvult from first) (has bits (bvand first (_ bv63 64))))")
    yield Goal("slots: first_begin() is no later than any such slot", bits,
               is_in, "(bvule first b)")
    number = f"(first_begin {zero} bits (slot_of c from))"
    yield Goal("slots: first_begin() is that of the slots' numbers",
               bits + classes, is_class,
               f"(= (first_begin c bits from) (bvshl {number}"
               " ((_ zero_extend 32) (bvmul (_ bv3 32) c))))")
    yield Goal("slots: a beginning does not overflow if a later one exists",
               [*classes, *constants("u64", "n", "b"),
                "(define-fun begin () (_ BitVec 64) (bvshl n"
                " ((_ zero_extend 32) (bvmul (_ bv3 32) c))))"],
               [*is_class, "(begins c b)", "(bvule n (slot_of c b))"],
               "(and (begins c begin) (bvule begin b)"
               " (= (slot_of c begin) n))")


def check_of(source):
    """How file_in_class() makes the check from the slot."""
    from slots import timer_names
    text = source.quote("src/timer/lawn_impl.h", "file_in_class",
                        "const lawn_time_t check = @;")
    return source.term(text, timer_names(slot="slot", c="c")).to("u64").text
