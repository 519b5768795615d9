/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Shared timers: src/shared/, and of src/engine/sleep.cc how the owner goes to
 * sleep and is woken. The owner passes, sleeps, starts by a store, retires in a
 * callback, drains the lawn and destroys the box. Two other threads start,
 * stop, sync and retire. Each access to what they share is a step (box.pml), in
 * the order of shared_ops.h, and anything may come in between.
 *
 * There are three kinds of program, each of a few calls, by anybody, in which a
 * retire counts only if it is made in a callback:
 *
 *   - two calls for one timer that may be retired at any time, in a box that
 *     may be destroyed at any time;
 *   - two for two timers, one of each thread, which are retired, and the box
 *     destroyed, when these have begun; and a budget;
 *   - three for one timer that is retired in a callback, or when these are
 *     over; and earlier and later deadlines.
 *
 * Time goes by when the owner begins a pass, and when it sleeps. It may wake
 * before its time for a reason of its own, and sleep again without a pass.
 *
 * Checked: no start fires early, nor after it was stopped, superseded or has
 * fired; no callback begins after a retire has returned; what is due when a
 * pass begins is not left by it, unless the budget was; a sleeper that nobody
 * is about to wake sleeps no later than until the earliest deadline, and with
 * no retired timer in its box, save where a call for this timer is under way;
 * no callback that began before a sync runs when it returns; a timer is in the
 * box once, it is released once, and touched by nobody afterwards; so is the
 * box, which is freed when all is over; a start that is called after a destroy
 * is false, and nobody wakes the owner any more; nobody waits for ever.
 *
 * Abstracted: memory is sequentially consistent (test/model tries what store
 * buffers do); a loop of compare and swap is the step with which it succeeds,
 * and a start that finds the timer retired is none; `runs` is whether a thread
 * has read its latest value. A callback begins when it takes the start. The
 * plain timer is late by no more than a pass, and the timerfd is
 * set before each sleep (sleep.pml). `released` is called when all other calls
 * for the timer have returned, as programs must ensure. There is no fork.
 *
 * 3.9 million states; some 10 million with -DCALLS=4.
 */

#ifndef CALLS
#define CALLS 3
#endif

#include "box.pml"

#define least(a, b) ((a) < (b) -> (a) : (b))

byte now;
byte last = 2;           /* point in time */
byte calls = CALLS;      /* that may still be made */
bit is_hasty;            /* retires and the destroy come at any time */
bit has_own;             /* each thread has a timer of its own */
bit claimed[TIMERS + 1]; /* somebody retires it */

#define may_end (is_hasty || has_own && calls == 0)

/* What a thread may call, which ends before the timer is released. */
#define may_call(t)                                                            \
    (calls > 0 && !gone[t] && (!has_own || t == _pid))
#define may_start(t) (may_call(t) && !retired[t])
#define is_over (calls == 0 && is_quiet(1) && _pid == 1)
#define may_retire(t)                                                          \
    (!claimed[t] && (may_end || is_over) && (!has_own || t == _pid))

inline choose(is_1, is_2)
{
    if
    :: is_1 -> t = 1
    :: is_2 -> t = 2
    fi
}

inline choose_deadline()
{
    if
    :: d = 1
    :: last == 2 -> d = 2
    fi
}

inline claim(t)
{
    claimed[t] = true;
    retires[t] = true
}

proctype thread()
{
    byte t, d;
    bit starts, is_dead;
over:
    do
    :: atomic { may_start(1) || may_start(2) ->
            choose(may_start(1), may_start(2));
            choose_deadline();
            calls--;
            inside[t]++;
            starts = true;
            is_dead = is_destroyed
        };
        start(t, d);
        goto rings
    :: atomic { may_call(1) || may_call(2) ->
            choose(may_call(1), may_call(2));
            calls--;
#ifdef FAULT_STOP_IS_A_STORE
            inside[t]++;
            d = deadline[t]
        };
        atomic {
            assert(d == INFINITY || lives[t]);
            put_infinity(t);
            inside[t]--;
            d = 0;
#else
            take_start(t);
#endif
            t = 0
        }
    :: atomic { may_call(1) || may_call(2) ->
            choose(may_call(1), may_call(2));
            calls--;
            inside[t]++;
            same_run[_pid] = true;
            awaits[_pid] = (called == t)
        };
        sync(t)
    :: atomic { may_retire(1) || may_retire(2) ->
            choose(may_retire(1), may_retire(2));
            claim(t)
        };
        retire(t);
#ifdef FAULT_RETIRE_DOES_NOT_RING
        atomic { end_retire(); goto over };
#endif
rings:
        ring(d);
        atomic { end_retire() }
    :: claimed[1] && claimed[2] -> break
    od
}

inline call_back(t)
{
    assert(!is_late);
    if
    :: atomic { calls > 0 -> calls--; choose_deadline() };
        start_slow(t, d)
    :: atomic { calls > 0 && !claimed[t] -> calls--; claim(t) };
        retire_in_callback(t)
    :: true
    fi
}

inline tell_run(t)
{
#ifndef FAULT_RUNS_ARE_COUNTED_LATE
    atomic { touch_box(); same_run[1] = false; same_run[2] = false };
#endif
#ifndef FAULT_RUNNING_IS_TOLD_LATE
    atomic { touch_box(); running = t }
#endif
}

/* Whose cover was raised. */
inline expire(t)
{
    tell_run(t);
    if
    :: atomic { deadline[t] <= now ->
            touch(t);
#ifdef FAULT_EXPIRE_DOES_NOT_COMPARE
        };
        atomic {
#endif
            assert(deadline[t] <= now);
            take_start(t);
            called = t;
            is_late = is_retired[t]
        };
#ifdef FAULT_RUNS_ARE_COUNTED_LATE
        atomic { touch_box(); same_run[1] = false; same_run[2] = false };
#endif
#ifdef FAULT_RUNNING_IS_TOLD_LATE
        atomic { touch_box(); running = t };
#endif
#ifdef FAULT_COVER_IS_RAISED_LATE
        atomic { raise_cover(t) };
#endif
        if
#ifdef FAULT_EXPIRE_IGNORES_RETIRED
        :: true ->
#else
        :: atomic { retired[t] -> touch(t) }
        :: atomic { !retired[t] -> touch(t) };
#endif
            call_back(t)
        fi;
        atomic {
            touch_box();
            is_late = false;
            called = 0;
            awaits[1] = false;
            awaits[2] = false;
            running = 0
        }
    :: atomic { deadline[t] > now -> touch(t) };
#ifdef FAULT_COVER_IS_RAISED_LATE
        atomic { raise_cover(t) };
#endif
        atomic { touch_box(); running = 0 };
        lower_cover(t)
    fi
}

inline set_due()
{
    for (t : 1 .. TIMERS) {
        due[t] = (cover[t] <= now)
    }
    t = 0
}

/* What is left, and what is there, or with a budget a part of it. */
inline drain()
{
    do
    :: atomic { taken != 0 ->
            t = taken;
            touch(t);
#ifndef FAULT_NEXT_IS_READ_LATE
            taken = next[t];
            next[t] = 0
#endif
        };
        receive(t);
#ifdef FAULT_NEXT_IS_READ_LATE
        atomic { taken = next[t]; next[t] = 0 };
#endif
        has_received = true
    :: atomic { taken == 0 && !has_taken ->
            touch_box();
            has_taken = true;
            taken = top;
            top = 0;
            asleep = false;
            if
            :: taken == 0 -> set_due(); break
            :: else
            fi
        }
    :: atomic { taken == 0 && has_taken || taken != 0 && has_received ->
            set_due();
            break
        }
    od
}

/* A drain and an advance. */
inline pass()
{
    atomic {
        do
        :: now < last -> now++
        :: break
        od;
        for (t : 1 .. TIMERS) {
            owed[t] = (deadline[t] <= now && !retired[t] && is_quiet(t))
        }
        t = 0
    };
    drain();
    do
    :: atomic { due[1] || due[2] ->
            choose(due[1], due[2]);
            due[t] = false;
#ifndef FAULT_COVER_IS_RAISED_LATE
            raise_cover(t)
#endif
        };
        expire(t)
    :: atomic { !due[1] && !due[2] ->
            for (t : 1 .. TIMERS) {
                assert(!owed[t] || taken != 0);
                assert(lives[t] == (deadline[t] != INFINITY));
                owed[t] = false
            }
            t = 0;
            has_taken = false;
            has_received = false;
            if
            :: !asleep && is_quiet(1) && is_quiet(2) -> wake_at = 0
            :: else /* somebody may look at it yet */
            fi;
            break
        }
    od
}

#define next_due least(cover[1], cover[2])

/* set_timer(), lawn_box_sleep() and block() */
inline sleep()
{
    atomic { next_due > now && taken == 0 ->
        rung = false;
        sleeps = true;
        if
        :: until = next_due
        :: now < last -> until = least(next_due, now + 1)
        fi;
        touch_box();
#ifndef FAULT_WAKE_AT_IS_STORED_LATE
        wake_at = until
#endif
    };
    if
    :: atomic { top == 0 -> touch_box(); asleep = true };
#ifdef FAULT_WAKE_AT_IS_STORED_LATE
        atomic { wake_at = until };
#endif
#ifdef FAULT_THE_TIMERFD_IS_SET_LAST
        atomic { rung = false };
#endif
        atomic {
            assert(asleep || rung || waking > 0);
            for (t : 1 .. TIMERS) {
                assert(!asleep || gone[t] || !is_quiet(t) ||
                       !retired[t] && deadline[t] >= until)
            }
            if
            :: until != INFINITY -> now = until
            :: true
            fi;
            t = 0;
            until = 0;
            rung = false;
            sleeps = false
        }
    :: atomic { top != 0 -> until = 0; rung = false; sleeps = false }
    fi
}

inline uncover_all()
{
    do
    :: cover[1] != INFINITY -> uncover(1)
    :: cover[2] != INFINITY -> uncover(2)
    :: cover[1] == INFINITY && cover[2] == INFINITY -> break
    od
}

/* lawn_box_destroy() */
inline destroy()
{
#ifndef FAULT_CLOSED_BEFORE_UNCOVERED
    uncover_all();
#endif
    atomic {
        touch_box();
        rest = top;
        top = 0;
        asleep = false;
        closed = true
    };
    do
    :: atomic { taken != 0 ->
            t = taken;
            taken = next[t];
            next[t] = 0;
            in_box[t] = false;
            put_infinity(t)
        };
        if
        :: atomic { !retired[t] -> take_posted(t) }
        :: atomic { retired[t] -> take_posted(t) };
            let_go(t, 0)
        fi;
        t = 0
    :: atomic { taken == 0 && rest != 0 -> taken = rest; rest = 0 }
    :: taken == 0 && rest == 0 -> break
    od;
#ifdef FAULT_CLOSED_BEFORE_UNCOVERED
    uncover_all();
#endif
#ifndef FAULT_CLOSE_WAITS_FOR_NOBODY
    atomic { ringing == 0 -> touch_box() };
#endif
    atomic { count_down_users(); is_destroyed = true }
}

inline choose_program()
{
    if
    :: is_hasty = true
    :: has_own = true
    :: true
    fi;
    if
    :: is_hasty || has_own -> last = 1; calls--
    :: else
    fi;
    if
    :: !has_own -> gone[2] = true; claimed[2] = true; users--
    :: else
    fi
}

active proctype owner()
{
    byte t, d, seen, taken, until, rest;
    bit due[TIMERS + 1]; /* the plain timer, in this advance */
    bit has_taken, has_received, is_late;
    atomic {
        choose_program();
        run thread();
        run thread()
    };
    do
    :: pass()
    :: sleep()
    :: atomic { calls > 0 && !has_own && (!gone[1] || !gone[2]) ->
            calls--;
            choose(!gone[1], !gone[2]);
            choose_deadline();
            if
            :: d >= cover[t] -> put_start(t, d); d = 0
            :: else
            fi
        };
        if
        :: d != 0 -> start_slow(t, d)
        :: else
        fi;
        t = 0
    :: atomic { calls > 0 && !has_own && cover[1] != INFINITY -> calls-- };
        uncover(1) /* lawn_drain() */
    :: may_end || claimed[1] && claimed[2] -> break
    od;
    destroy();
    _nr_pr == 1; /* nobody else is left */
    assert(is_freed && gone[1] && gone[2])
}
