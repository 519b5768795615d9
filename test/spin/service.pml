/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A timer of the service (src/service/service.cc): who ends its start, when its
 * node is put back, and when its shared timer expires. Two threads start the
 * node whenever it is free, the service's thread expires it, and two others
 * cancel by handles that may be of any start. What is cancelled stays armed, so
 * that the shared timer may expire for a start that is over while the next is
 * being made, or before the next is armed, which then arms it too late. Each
 * access to what they share is a step, and anything may come in between.
 *
 * Checked: each start is called or cancelled, once, with its own argument, not
 * before it is due, and not before it has its handle; a cancel that says no is
 * of a start that has ended; the node is put back once for each start; the
 * count, for who enters all lanes, is of what is pending. When nothing more can
 * happen all starts have ended, but for one that is never due.
 *
 * Abstracted: the shared timer is its deadline (test/model explores its steps);
 * the pool is one node, and each thread has a lane. The first start finds the
 * timer armed. Who cancels has the handle from a start that has returned.
 *
 * 13 million states.
 */

#define STARTS 3
#define LATEST 2
#define NEVER 255

/* One word: it is read and compared as a whole. */
byte generation;
bit pending;

byte due, argument; /* of the node; the argument is its generation */
byte deadline = 1; /* of the shared timer */
byte now;
bit is_free = true;

byte inside; /* threads in their lanes */
byte count;

/* For the assertions, of each generation. */
byte begun; /* the latest */
byte due_of[STARTS + 1];
bit has_handle[STARTS + 1];
bit has_returned[STARTS + 1];
bit called[STARTS + 1];
bit cancelled[STARTS + 1];

inline put_back()
{
    assert(!is_free);
    is_free = true;
    count--
}

#ifdef FAULT_A_HANDLE_IS_OF_ANY_START
#define is_now(g) pending
#else
#define is_now(g) (generation == (g) && pending)
#endif

/* Compare and swap: whose answer is true has the end of the start. */
inline try_end(g, mark)
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

#ifdef FAULT_ENDS_BEFORE_THE_LANE
inline end(g, mark)
{
    try_end(g, mark);
    inside++
}
#else
inline end(g, mark)
{
    atomic { inside++; try_end(g, mark) }
}
#endif

proctype starter()
{
    byte g, mine;
end_waits: /* for a node that is never due */
    do
    :: atomic { begun < STARTS && is_free ->
            inside++;
            is_free = false;
            count++;
            g = begun + 1;
            argument = g;
            if
            :: mine = 1
            :: mine = 2
            :: mine = NEVER
            fi;
            due = mine;
            due_of[g] = mine
        };
#ifdef FAULT_THE_HANDLE_COMES_LAST
        atomic { begun = g; generation = g; pending = true };
        has_handle[g] = true;
        inside--;
#else
        atomic {
            has_handle[g] = true;
            begun = g;
            generation = g;
            pending = true;
            inside--
        };
#endif
        deadline = mine; /* lawn_shared_start() */
        atomic { has_returned[g] = true; g = 0; mine = 0 }
    :: begun == STARTS -> break
    od
}

proctype canceller()
{
    byte g;
    bit is_done;
    byte left = 1;
    do
    :: left > 0 ->
        atomic {
            left--;
            select(g : 1 .. STARTS)
        };
        if
        :: !has_returned[g] /* nobody has that handle yet */
        :: has_returned[g] ->
            end(g, cancelled[g]);
            if
            :: atomic { !is_done ->
                    assert(called[g] || cancelled[g]);
#ifdef FAULT_CANCEL_ALWAYS_PUTS_BACK
                    put_back();
#endif
                    inside--
                }
            :: atomic { is_done -> put_back(); inside-- }
            fi;
            /* pending_of() */
            atomic { inside == 0 -> assert(count == pending) }
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
    byte g, seen, when;
    bit is_done, was_pending;
    atomic {
        run starter();
        run starter();
        run canceller();
        run canceller()
    };
end_idle:
    do
    :: atomic { deadline <= now -> deadline = NEVER; seen = now };
        atomic { g = generation; was_pending = pending };
        when = due;
        if
#ifndef FAULT_CALLS_WHAT_IS_NOT_DUE
        :: was_pending && when > seen ->
#ifndef FAULT_IS_NOT_ARMED_AGAIN
            do
            :: deadline = when;
#ifndef FAULT_IS_ARMED_AGAIN_ONCE
                if
                :: atomic { due != when -> when = due }
                :: due == when -> break
                fi
#else
                break
#endif
            od
#endif
        :: was_pending && when <= seen ->
#else
        :: was_pending ->
#endif
#ifdef FAULT_CALLS_WHAT_WAS_CANCELLED
            atomic {
                inside++;
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
                assert(due_of[g] <= now && has_handle[g]);
#ifdef FAULT_READS_AFTER_PUTTING_BACK
                atomic { put_back(); inside-- };
                assert(argument == g)
#else
                assert(argument == g);
                atomic { put_back(); inside-- }
#endif
            :: atomic { !is_done ->
#ifdef FAULT_EXPIRY_ALWAYS_PUTS_BACK
                    put_back();
#endif
                    inside--
                }
            fi
        :: !was_pending
        fi;
        atomic { g = 0; seen = 0; when = 0; is_done = false; was_pending = false }
    od
}

/* Nothing more can happen. */
active proctype monitor()
{
    byte g;
    timeout;
    assert(begun == STARTS || due_of[begun] == NEVER);
    assert(is_free == !pending && inside == 0 && count == pending);
    assert(!pending || due_of[begun] == NEVER);
    for (g : 1 .. begun) {
        assert(called[g] + cancelled[g] + (g == begun && pending) == 1)
    }
}
