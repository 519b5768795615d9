/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the lawn of advance.pml is made of, and how a timer is filed in it:
 * src/timer/slots.h and lawn_impl.h, and next.cc, which tells when to come back.
 * `seen`, `until` and `round` are there `done`, `round_time` and `round_check`.
 *
 * A list is kept by its timers, each of which knows its place in it, so that no
 * two states differ where two lawns would not.
 */

#define TIMERS 3
#define ALARM 4 /* of the queue: a timer like others */
#define NODES 4
#define CLASSES 3
#define SLOTS 4
#define CIRCLE 16 /* ticks that all slots of the highest class take */
#define NEVER 255
#define NO_QUEUE 255

/* Checks of what is due or in the queue: `due_check` of this pass, of a pass
 * before but not before the round, and of one before the round. */
#define this_pass 255
#define since_round 254
#define before_round 253

#define least(a, b) ((a) < (b) -> (a) : (b))

/* The lists that a timer may be in. */
#define idle 0
#define due 1
#define in_queue 2
#define slots 3 /* and those that follow */

/* The timers, from 1, and the alarm. */
byte list[NODES + 1];
byte rank[NODES + 1]; /* in the list, from 0 */
byte deadline[NODES + 1] = NEVER;
byte check[NODES + 1];
bit owed[NODES + 1];   /* a callback; for the assertions, as are these */
bit is_new[NODES + 1]; /* started in this advance */
byte order[NODES + 1]; /* of starts in the queue, from 1 */
bit in_turn[NODES + 1]; /* before the mark of the queue */

/* The lawn. */
byte now, seen, until;
byte wake = NEVER;
byte running;
short filled;  /* a bit per slot */
byte occupied; /* a bit per class */
bit busy, is_settled;
byte queue_ttl = NO_QUEUE;
bit is_firing; /* the queue's timers are fired now */
bit is_marked; /* the mark is in the queue */

/* The advance. */
byte pass_now, budget, spent;
bit is_last;     /* the round has begun in this advance */
bit is_over;     /* the round, or the budget */
bit has_touched; /* the queue a timer, since its alarm */
byte touched;    /* for the assertions */

/* For use within a d_step. */
hidden byte i, j, k, n, c, where, begin, best, looks;
hidden short bits;
hidden byte is_enough;

#define is_linked(t) (list[t] != idle)
#define has_left (budget == 0 || spent < budget)
#define next (running == 0 -> NEVER : wake) /* lawn_next() */

/* slots.h */
#define class_of(ttl) ((ttl) < 4 -> 0 : ((ttl) < 8 -> 1 : 2))
#define slot_of(c, time) (SLOTS * (c) + ((time) >> (c)) % SLOTS)
#define bit_of(slot) (1 << (slot))
#define is_begun(c, slot, from, to)                                            \
    (((slot) + SLOTS - (((from) >> (c)) + 1) % SLOTS) % SLOTS <                \
     ((to) >> (c)) - ((from) >> (c)))

/* Lists. */
inline count_list(which)
{
    n = 0;
    for (i : 1 .. NODES) {
        n = n + (list[i] == which)
    }
}

inline append(t, which)
{
    count_list(which);
    list[t] = which;
    rank[t] = n
}

inline unlink(t)
{
    for (i : 1 .. NODES) {
        rank[i] = rank[i] - (list[i] == list[t] && rank[i] > rank[t])
    }
    list[t] = idle;
    rank[t] = 0;
    in_turn[t] = 0
}

/* 0: none. */
inline find(t, which, at)
{
    t = 0;
    for (i : 1 .. NODES) {
        t = (list[i] == which && rank[i] == at -> i : t)
    }
}

inline file(t)
{
    if
    :: deadline[t] > now ->
        c = class_of(deadline[t] - now);
#ifdef FAULT_A_SLOT_BEGINS_LATE
        check[t] = ((deadline[t] + (1 << c) - 1) >> c) << c;
#else
        check[t] = (deadline[t] >> c) << c;
#endif
        where = slot_of(c, check[t]);
        append(t, slots + where);
#ifdef FAULT_A_CLASS_HAS_NO_BIT
        occupied = (filled == 0 -> occupied | (1 << c) : occupied);
#else
        occupied = occupied | (1 << c);
#endif
        filled = filled | bit_of(where);
#ifdef FAULT_WAKE_IS_NOT_LOWERED
        wake = (running == 1 -> check[t] : wake)
#else
        wake = least(wake, check[t])
#endif
    :: else ->
#ifdef FAULT_WHAT_IS_DUE_IS_INLINE
        check[t] = 0;
#else
        check[t] = this_pass;
#endif
        append(t, due);
        wake = least(wake, deadline[t])
    fi
}

/* The begin of the first slot of a class with one of the bits. */
inline first_begin(c, bits)
{
    begin = (seen >> c) + 1;
    do
    :: !(bits & bit_of(slot_of(0, begin) + SLOTS * c)) -> begin++
    :: else -> break
    od;
    begin = begin << c
}

#define bits_of_class(c) (15 << SLOTS * (c))

/* The bits of an empty slot. */
inline clear(c, where)
{
    filled = filled & ~bit_of(where);
    if
    :: (filled & bits_of_class(c)) == 0 -> occupied = occupied & ~(1 << c)
    :: else
    fi
}

/* The begin of the first slot that holds a timer, in `best`. */
inline first_slot()
{
    best = NEVER;
    for (c : 0 .. CLASSES - 1) {
        do
        :: (occupied & (1 << c)) &&
#ifdef FAULT_THE_LOWEST_CLASS_IS_FIRST
                best == NEVER ->
#else
                ((seen >> c) + 1) << c < best ->
#endif
            assert(filled & bits_of_class(c));
            first_begin(c, filled);
            where = slot_of(c, begin);
            count_list(slots + where);
            if
            :: begin >= best -> break
            :: begin < best && n == 0 -> clear(c, where)
            :: begin < best && n != 0 -> best = begin; break
            fi
        :: else -> break
        od
    }
}

inline open()
{
    is_settled = false;
    count_list(due);
    if
#ifdef FAULT_A_ROUND_IS_FORGOTTEN
    :: n == 0 ->
#else
    :: until == seen && n == 0 ->
#endif
        first_slot();
        wake = best
    :: else -> wake = 0
    fi
}
