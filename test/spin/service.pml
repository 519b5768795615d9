/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A timer of the service (src/service/service.cc): who ends its start, and when
 * its node is put back. Somebody starts the node whenever it is free, the
 * service's thread expires it, and two others cancel by handles that may be of
 * any start. What is cancelled stays armed, so that the shared timer may expire
 * for a start that is over while the next is being made. Each access to what
 * they share is a step, and anything may come in between.
 *
 * Checked: each start is called or cancelled, once, with its own argument, and
 * not before it is due; a cancel that says no is of a start that has ended; the
 * node is put back once for each start. When nothing more can happen it is free,
 * and all starts have ended.
 *
 * Abstracted: the shared timer is its deadline (shared.pml); the pool is one
 * node under a lock.
 */

#define STARTS 3
#define LATEST 2
#define NEVER 255

/* One word: it is read and compared as a whole. */
byte generation;
bit pending;

byte due, argument; /* of the node; the argument is its generation */
byte deadline = NEVER; /* of the shared timer */
byte now;
bit is_free = true;

/* For the assertions, of each generation. */
byte begun; /* the latest */
byte due_of[STARTS + 1];
bit called[STARTS + 1];
bit cancelled[STARTS + 1];

inline put_back()
{
    atomic { assert(!is_free); is_free = true }
}

#ifdef FAULT_A_HANDLE_IS_OF_ANY_START
#define is_now(g) pending
#else
#define is_now(g) (generation == (g) && pending)
#endif

/* Compare and swap: whose answer is true has the end of the start. */
inline end(g, mark)
{
    atomic {
        is_done = is_now(g);
        if
        :: is_done ->
            assert(!called[g] && !cancelled[g]);
            pending = false;
            mark = true
        :: else
        fi
    }
}

proctype starter()
{
    do
    :: begun < STARTS ->
        atomic { is_free -> is_free = false };
        argument = begun + 1;
        atomic {
            select(due : 1 .. LATEST);
            due_of[begun + 1] = due
        };
        atomic {
            begun++;
            generation = begun;
            pending = true
        };
        deadline = due_of[begun] /* lawn_shared_start() */
    :: begun == STARTS -> break
    od
}

proctype canceller()
{
    byte g;
    bit is_done;
    byte left = 2;
    do
    :: left > 0 ->
        atomic {
            left--;
            select(g : 1 .. STARTS)
        };
        if
        :: g > begun /* nobody has that handle yet */
        :: g <= begun ->
            end(g, cancelled[g]);
            if
            :: !is_done ->
                assert(called[g] || cancelled[g]);

#ifdef FAULT_CANCEL_ALWAYS_PUTS_BACK
                put_back()
#endif
            :: is_done -> put_back()
            fi
        fi;
        is_done = false
    :: left == 0 -> break
    od
}

active proctype clock()
{
    do
    :: now < LATEST -> now++
    :: now == LATEST -> break
    od
}

active proctype service()
{
    byte g, seen;
    bit is_done, was_pending;
    atomic {
        run starter();
        run canceller();
        run canceller()
    };
end_idle:
    do
    :: atomic { deadline <= now -> deadline = NEVER; seen = now };
        atomic { g = generation; was_pending = pending };
        if
        :: was_pending ->
#ifndef FAULT_CALLS_WHAT_IS_NOT_DUE
            if
            :: due > seen -> goto over
            :: due <= seen
            fi;
#endif
#ifdef FAULT_CALLS_WHAT_WAS_CANCELLED
            atomic {
                is_done = true;
                assert(!cancelled[g]);
                pending = false;
                called[g] = true
            };
#else
            end(g, called[g]);
#endif
            if
            :: is_done ->
                assert(due_of[g] <= now);
#ifdef FAULT_READS_AFTER_PUTTING_BACK
                put_back();
                assert(argument == g)
#else
                assert(argument == g);
                put_back()
#endif
            :: !is_done
#ifdef FAULT_EXPIRY_ALWAYS_PUTS_BACK
                -> put_back()
#endif
            fi
        :: !was_pending
        fi;
over:
        atomic { g = 0; seen = 0; is_done = false; was_pending = false }
    od
}

/* Nothing more can happen. */
active proctype monitor()
{
    byte g;
    timeout;
    assert(begun == STARTS && is_free);
    for (g : 1 .. STARTS) {
        assert(called[g] + cancelled[g] == 1)
    }
}
