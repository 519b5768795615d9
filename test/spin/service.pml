/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A timer of the service (src/service/service.cc): who ends its start, and who
 * puts its node back. Somebody starts the node whenever it is free, the
 * service's thread expires it, and two others cancel by handles that may be of
 * any start. Each access to the node's state is a step, and anything may come
 * in between.
 *
 * Checked: each start is called or cancelled, once, and none that was cancelled
 * is called; a cancel that says no is of a start that has ended; the node is
 * put back once for each start, and when nobody will expire it. When nothing
 * more can happen it is free, and all starts have ended.
 *
 * Abstracted: the shared timer is armed or not, and a stop is an exchange
 * (shared.pml); the pool is one node under a lock; time.
 */

#define STARTS 3

/* What a state says beside the generation. */
#define ENDED 0
#define PENDING 1
#define CANCELLED 2
#define EXPIRED 3

/* One word: it is read and compared as a whole. */
byte generation, what;

bit armed;
bit is_free = true;

/* For the assertions, of each generation. */
byte begun; /* the latest */
bit called[STARTS + 1];
bit cancelled[STARTS + 1];

inline put_back()
{
    atomic { assert(!is_free && !armed); is_free = true }
}

/* Compare and swap; `is_done` is the answer. */
#ifdef FAULT_A_HANDLE_IS_OF_ANY_START
#define is_now(g, w) (what == (w))
#else
#define is_now(g, w) (generation == (g) && what == (w))
#endif

inline change(g, from, to)
{
    atomic {
        is_done = is_now(g, from);
        if
        :: is_done -> what = to
        :: else
        fi
    }
}

/* Whose answer is true has the end of the start. */
inline end(g, to)
{
    atomic {
        is_done = is_now(g, PENDING);
        if
        :: is_done ->
            assert(!called[g] && !cancelled[g]);
            what = to;
            cancelled[g] = (to == CANCELLED);
            called[g] = (to == ENDED)
        :: else
        fi
    }
}

proctype starter()
{
    do
    :: begun < STARTS ->
        atomic { is_free -> is_free = false };
        atomic {
            begun++;
            generation = begun;
            what = PENDING
        };
        armed = true /* lawn_shared_start() */
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
            end(g, CANCELLED);
            if
            :: !is_done -> assert(called[g] || cancelled[g])
            :: is_done ->
                if
                :: atomic { armed -> armed = false };
                    put_back()
                :: atomic { !armed -> skip };
#ifdef FAULT_CANCEL_ALWAYS_PUTS_BACK
                    put_back()
#else
                    change(g, CANCELLED, ENDED);
                    if
                    :: !is_done -> put_back()
                    :: is_done
                    fi
#endif
                fi
            fi
        fi;
        is_done = false
    :: left == 0 -> break
    od
}

active proctype service()
{
    byte g;
    bit is_done;
    atomic {
        run starter();
        run canceller();
        run canceller()
    };
end_idle:
    do
    :: atomic { armed -> armed = false };
        g = generation;
#ifdef FAULT_CALLS_WHAT_WAS_CANCELLED
        atomic { is_done = true; assert(!cancelled[g]); called[g] = true };
#else
        end(g, ENDED);
#endif
        if
        :: is_done -> put_back()
        :: !is_done ->
#ifdef FAULT_EXPIRY_ALWAYS_PUTS_BACK
            put_back()
#else
            change(g, CANCELLED, EXPIRED);
            if
#ifdef FAULT_NOBODY_PUTS_BACK
            :: !is_done
#else
            :: !is_done -> put_back()
#endif
            :: is_done
            fi
#endif
        fi;
        atomic { g = 0; is_done = false }
    od
}

/* Nothing more can happen. */
active proctype monitor()
{
    byte g;
    timeout;
    assert(begun == STARTS && is_free && !armed);
    for (g : 1 .. STARTS) {
        assert(called[g] + cancelled[g] == 1)
    }
}
