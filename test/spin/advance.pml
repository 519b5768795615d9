/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * An advance and the callbacks that it makes: src/timer/advance.cc and start.cc
 * under a program that starts, re-arms, stops and pauses any timer at any time,
 * between advances and in callbacks, there also with a later `now` than that of
 * the advance. Three timers, and every program of up to four such calls, with
 * TTLs of 0, or of two others, which share a class and take turns in having a
 * queue of their own; with and without a budget.
 *
 * Checked: no timer fires early, nor in the advance in which it was started (so
 * that ttl 0 cannot spin), nor twice, nor after it was stopped or paused;
 * timers of one TTL fire in the order of their starts; an advance fires no more
 * than its budget, and leaves nothing that is due if it fires less; no timer is
 * looked at that a callback may have freed; lawn_next() is never too late; and
 * what src/timer/lawn_impl.h says of checks and bounds holds after each call.
 *
 * Abstracted: of the queues there are one single's and one class's. A sweep
 * visits those that have come up in any order, does as much as it likes in
 * each visit, and goes on for any part of the time that is to be made up; so
 * all that the lanes and the shares of the code do is here, and more, but not
 * that it comes to an end. The calendar, from which nothing fires, is a part
 * of the tree. No field overflows, `max_moves` is not set, and nobody calls
 * lawn_settle() or lawn_drain(): test/model has those.
 *
 * 1.6 million states; 16 with -DCALLS=5.
 */

#ifndef CALLS
#define CALLS 4
#endif
#define TIMERS 3
#define FLOOR 1 /* of the class of the TTLs 1 and 2 */
#define SPAN 1  /* near_span */
#define NOW 4   /* of the latest advance: all times are relative to it */
#define LATER 5 /* than that, in a callback */
#define NEVER 255

#define least(a, b) ((a) < (b) -> (a) : (b))

/* The places of a timer, in the order of place.h. */
#define idle 0
#define paused 1
#define stray 2
#define native 3
#define listed 4
#define near 5

#define is_in_queue(t) (where[t] >= paused && where[t] <= native)

/* The timers, from 1. */
byte where[TIMERS + 1];
byte deadline[TIMERS + 1];
byte check[TIMERS + 1];
bit queue[TIMERS + 1];
byte turn[TIMERS + 1];
byte ttl_of[TIMERS + 1]; /* for the assertions, as are these */
bit owed[TIMERS + 1];    /* a callback */
bit is_new[TIMERS + 1];  /* started in this advance */

/* The queues. */
#define single 0
#define class 1
chan queues[2] = [TIMERS] of { byte };
byte bounds[2] = NEVER;
byte strays[2];
byte stray_bounds[2] = NEVER;
byte single_ttl;

/* The lawn. */
byte now = NOW;
byte next_due = NEVER; /* lawn_next(), but for timers that are all paused */
bool busy;

/* The advance. */
byte pass_now, budget, fired;

byte calls = CALLS;
chan call = [0] of { byte }; /* of a callback */
chan done = [0] of { bit };

#define may_go_on (budget == 0 || fired < budget)
#ifdef FAULT_A_RUN_HAS_NO_BUDGET
#define may_go_on_with_run true
#else
#define may_go_on_with_run may_go_on
#endif

inline first_of(q, t)
{
    t = 0;
    if
    :: len(queues[q]) > 0 -> queues[q] ? <t>
    :: else
    fi
}

/* In the tree, which is no more here than the set of the timers that are. */
#define is_before(t, u) (where[u] != near || deadline[t] < deadline[u] || \
                         deadline[t] == deadline[u] && turn[t] <= turn[u])

inline first_near(t)
{
    if
    :: where[1] == near && is_before(1, 2) && is_before(1, 3) -> t = 1
    :: where[2] == near && is_before(2, 1) && is_before(2, 3) -> t = 2
    :: where[3] == near && is_before(3, 1) && is_before(3, 2) -> t = 3
    :: else -> t = 0
    fi
}

inline first_waiting(when)
{
    first_near(head);
    when = (head != 0 -> deadline[head] : NEVER);
    head = 0
}

inline settle(q)
{
    first_of(q, head);
    bounds[q] = (head != 0 -> check[head] : NEVER);
    stray_bounds[q] = (head != 0 && strays[q] > 0 -> check[head] : NEVER);
    head = 0
}

inline append(t, q, how)
{
    where[t] = how;
    queue[t] = q;
    if
    :: how == stray ->
        strays[q]++;
        if
        :: strays[q] == 1 -> stray_bounds[q] = check[t]
        :: else
        fi
    :: else
    fi;
    if
    :: len(queues[q]) == 0 ->
        bounds[q] = check[t];
#ifndef FAULT_A_NEW_HEAD_IS_NOT_NEXT
        next_due = least(next_due, check[t]);
#endif
        if
        :: how != stray -> stray_bounds[q] = NEVER
        :: else
        fi
    :: else
    fi;
    queues[q] ! t
}

inline enqueue(t, how)
{
    check[t] = now + FLOOR;
    assert(check[t] <= deadline[t]);
    append(t, class, how)
}

inline unlink(t)
{
    if
    :: is_in_queue(t) ->
        queues[queue[t]] ?? eval(t);
        if
        :: where[t] != native -> strays[queue[t]]--
        :: else
        fi
    :: else
    fi;
    check[t] = 0;
    queue[t] = 0
}

#define turn_without(t, u) (turn[u] > turn[t] -> turn[u] - 1 : turn[u])

/* Turns are numbered from 1, without gaps. */
inline drop_turn(t)
{
    if
    :: turn[t] != 0 ->
        turn[0] = turn[t];
        turn[1] = turn_without(0, 1);
        turn[2] = turn_without(0, 2);
        turn[3] = turn_without(0, 3);
        turn[0] = 0;
        turn[t] = 0
    :: else
    fi
}

inline take_turn(t)
{
    drop_turn(t);
    turn[t] = 1 + (turn[1] != 0) + (turn[2] != 0) + (turn[3] != 0)
}

inline leave_order(t)
{
    strays[queue[t]]++;
    stray_bounds[queue[t]] = least(stray_bounds[queue[t]], check[t])
}

/* lawn_timer_start(), inline or not. */
inline start(t, ttl)
{
    take_turn(t);
    if
    :: is_in_queue(t) && ttl != 0 && now + ttl >= check[t] ->
        if
#ifndef FAULT_A_STRAY_IS_TAKEN_FOR_A_NATIVE
        :: where[t] == native -> leave_order(t); where[t] = stray
#endif
        :: where[t] == paused -> where[t] = stray
        :: else
        fi;
        next_due = least(next_due, now + ttl);
        deadline[t] = now + ttl
    :: else ->
        if
        :: where[t] != idle -> unlink(t)
        :: else
        fi;
        deadline[t] = now + ttl;
        if
#ifndef FAULT_NOTHING_IS_DEFERRED
        :: busy && ttl == 0 -> where[t] = listed
#endif
        :: else ->
            if
            :: len(queues[single]) == 0 -> single_ttl = ttl
            :: else
            fi;
            if
            :: single_ttl == ttl ->
                check[t] = deadline[t];
                append(t, single, native)
            :: single_ttl != ttl && ttl == 0 -> /* a class of its own */
                where[t] = near;
                next_due = least(next_due, deadline[t])
            :: else -> enqueue(t, native)
            fi
        fi
    fi;
    ttl_of[t] = ttl;
    owed[t] = 1;
    is_new[t] = busy
}

inline stop(t)
{
    if
    :: where[t] != idle -> unlink(t)
    :: else
    fi;
    rest(t)
}

/* What an idle timer still holds is of no account. */
inline rest(t)
{
    where[t] = idle;
    deadline[t] = 0;
    check[t] = 0;
    queue[t] = 0;
    drop_turn(t);
    ttl_of[t] = 0;
    owed[t] = 0;
    is_new[t] = 0
}

inline pause(t)
{
    if
    :: where[t] == idle || where[t] == paused
    :: where[t] == native || where[t] == stray ->
        if
        :: where[t] == native -> leave_order(t)
        :: else
        fi;
        where[t] = paused;
        owed[t] = 0;
        is_new[t] = 0;
        drop_turn(t);
        ttl_of[t] = 0
    :: else -> stop(t)
    fi
}

/* lawn_check(), as far as it goes. */
inline check_lawn()
{
    d_step {
        i = 1;
        do
        :: i <= TIMERS ->
            assert(owed[i] == (where[i] > paused));
            assert(where[i] != listed || busy);
            assert(!is_in_queue(i) || check[i] <= deadline[i]);
            assert(!is_in_queue(i) || bounds[queue[i]] <= check[i]);
            assert(where[i] != stray || stray_bounds[queue[i]] <= check[i]);
            assert(busy || !owed[i] || next_due <= deadline[i]);
            i++
        :: else -> break
        od;
        i = 0
    }
}

/* One that is idle is as good as another. */
inline choose_to_start(t)
{
    if
    :: t = 1
    :: where[1] != idle -> t = 2
    :: where[1] != idle && where[2] != idle -> t = 3
    fi
}

inline choose_to_stop(t)
{
    if
    :: where[1] != idle -> t = 1
    :: where[2] != idle -> t = 2
    :: where[3] != idle -> t = 3
    fi
}

/* What the program does in a callback, or between advances. */
active proctype calls_of_program()
{
    byte i, head, who;
end:
    atomic {
        call ? _;
        do
        :: calls > 0 ->
            calls--;
            choose_to_start(who);
            if
            :: busy -> now = LATER
            :: true
            fi;
            if
            :: true -> start(who, 0)
            :: true -> start(who, 1)
            :: true -> start(who, 2)
            fi;
            who = 0;
            check_lawn()
        :: calls > 0 && where[1] + where[2] + where[3] > 0 ->
            calls--;
            choose_to_stop(who);
            if
            :: stop(who)
            :: where[who] > paused -> pause(who)
            fi;
            who = 0;
            check_lawn()
        :: break
        od;
        done ! 0;
        goto end
    }
}

inline fire(t)
{
    d_step {
        assert(owed[t] && where[t] > paused); /* once, and not when stopped */
        assert(deadline[t] <= pass_now);      /* early */
        assert(!is_new[t]);                   /* it could spin */
        assert(may_go_on);
        i = 1;
        do
        :: i <= TIMERS ->
            assert(!owed[i] || ttl_of[i] != ttl_of[t] || turn[i] >= turn[t]);
            i++
        :: else -> break
        od;
        i = 0;
        rest(t);
        fired++
    };
    call ! t;
    done ? _
}

inline find_limit(q)
{
    first_waiting(limit);
#ifndef FAULT_STRAYS_ARE_NOT_WAITED_FOR
    limit = least(limit, least(stray_bounds[single], stray_bounds[class]));
#endif
#ifndef FAULT_THE_CLASS_IS_NOT_WAITED_FOR
    limit = (q == single && single_ttl != 0 -> least(limit, bounds[class])
                                            : limit);
#endif
    limit = least(limit, pass_now + 1)
}

/* Any number of natives, from the head of the queue. */
inline fire_natives(q)
{
    find_limit(q);
    first_of(q, timer);
    do
    :: may_go_on_with_run && timer != 0 && where[timer] == native &&
            deadline[timer] < limit ->
#ifdef FAULT_THE_NEXT_IS_READ_BEFORE_THE_CALLBACK
        queues[q] ?? eval(timer);
        first_of(q, head);
        fire(timer);
        timer = head;
        head = 0
#else
        queues[q] ?? eval(timer);
        fire(timer);
        first_of(q, timer)
#endif
        ;
        assert(timer == 0 || where[timer] != idle) /* freed, perhaps */
    :: break
    od;
    limit = 0;
    timer = 0
}

/* What step(), move_early(), move() and wait_in_order() do with a timer that
 * has come up. */
inline file_first(q)
{
    first_of(q, timer);
    if
    :: timer == 0
    :: timer != 0 && check[timer] <= until && where[timer] == paused ->
        unlink(timer);
        rest(timer)
    :: timer != 0 && where[timer] != paused &&
            (check[timer] <= until ||
             check[timer] <= pass_now + 1 && deadline[timer] > pass_now) ->
        unlink(timer);
        if
        :: deadline[timer] < now + SPAN -> where[timer] = near
        :: else -> enqueue(timer, stray)
        fi
    :: else
    fi;
    timer = 0
}

/* expire(). sweep_one() and sweep() visit queues that have come up, in any
 * order and as often as they like. */
inline expire()
{
    do
    :: may_go_on ->
        atomic {
            first_waiting(until);
            until = least(until, pass_now);
            found[single] = bounds[single] <= until;
            found[class] = bounds[class] <= until;
            if
            :: found[single] || found[class] ->
                do
                :: until < pass_now -> until++ /* a part of what is late */
                :: break
                od;
                found[single] = bounds[single] <= until;
                found[class] = bounds[class] <= until
            :: else ->
                until = 0;
                first_near(timer);
                if
                :: timer != 0 && deadline[timer] <= pass_now ->
                    fire(timer);
                    timer = 0
                :: else -> timer = 0; break
                fi
            fi
        };
        do
        :: atomic { found[single] && may_go_on -> fire_natives(single) }
        :: atomic { found[class] && may_go_on -> fire_natives(class) }
        :: atomic { found[single] && may_go_on -> file_first(single) }
        :: atomic { found[class] && may_go_on -> file_first(class) }
        :: break
        od;
        atomic {
            if
            :: found[single] -> settle(single)
            :: else
            fi;
            if
            :: found[class] -> settle(class)
            :: else
            fi;
            found[single] = 0;
            found[class] = 0;
            until = 0
        }
    :: else -> break
    od
}

inline leave()
{
    d_step {
        busy = false;
        i = 1;
        do
        :: i <= TIMERS ->
            where[i] = (where[i] == listed -> near : where[i]);
            i++
        :: else -> break
        od;
        i = 0;
        first_waiting(next_due);
        next_due = least(next_due, least(bounds[single], bounds[class]))
    }
}

/* Nothing that was due is left, unless the budget was. */
inline check_advance()
{
    d_step {
        i = 1;
        do
        :: i <= TIMERS ->
            assert(!may_go_on || !owed[i] || is_new[i] ||
                   deadline[i] > pass_now);
            is_new[i] = 0;
            i++
        :: else -> break
        od;
        i = 0
    };
    check_lawn()
}

#define count_down(when) \
    when = (when > 0 && when < NEVER -> when - 1 : when)

/* Which is that all that is known is a tick closer, or further back. */
inline let_time_pass()
{
    i = 1;
    do
    :: i <= TIMERS ->
        count_down(deadline[i]);
        count_down(check[i]);
        i++
    :: else -> break
    od;
    i = 0;
    count_down(bounds[single]);
    count_down(bounds[class]);
    count_down(stray_bounds[single]);
    count_down(stray_bounds[class]);
    count_down(next_due)
}

#define is_late(t) (where[t] != idle && deadline[t] <= 1)

/* lawn_advance() */
active proctype advance()
{
    byte i, head, timer, limit, until;
    bit found[2];
    do
    :: atomic {
            call ! 0;
            done ? _;
            if
            :: !is_late(1) && !is_late(2) && !is_late(3) -> let_time_pass()
            :: true
            fi;
            if
            :: next_due <= now -> /* lawn_advance_rest() */
                pass_now = now;
                busy = true;
                if
                :: budget = 0
                :: budget = 1
                :: budget = 2
                fi
            :: else
            fi
        };
        if
        :: busy ->
            expire();
            leave();
            check_advance();
            d_step {
                pass_now = 0;
                budget = 0;
                fired = 0;
                if
                :: now == LATER -> now = NOW; let_time_pass()
                :: else
                fi
            }
        :: else
        fi
    od
}
