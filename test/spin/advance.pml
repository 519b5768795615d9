/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * An advance and the callbacks that it makes: src/timer/, under a program that
 * starts, re-arms, stops and pauses any timer at any time, between advances and
 * in callbacks, there also with a later `now` than that of the advance; that
 * settles, and destroys the queue.
 *
 * The arithmetic of slots.h is here with one octave a class instead of three:
 * three classes of four slots, for TTLs below 16. There are three timers and a
 * queue. Time goes on for ever: a whole circle of the highest class is taken
 * off all times when it is over. There are two kinds of program:
 *
 *   - those of up to four calls, with and without a budget. The clock shows in
 *     each pass when the lawn asked to be woken; that it is later, that a pass
 *     comes before, or is as of an older reading, counts as a call;
 *   - restless ones, whose timers restart themselves in each callback, for
 *     ever, with a budget of 1, while the clock goes on as it likes.
 *
 * Checked: no timer fires early, nor in the advance in which it was started (so
 * that ttl 0 cannot spin), nor twice, nor after it was stopped or paused; an
 * advance touches no more than its budget, and leaves nothing that is due if it
 * touches less; timers of the queue fire in the order of their starts; a timer
 * that is due fires within far fewer advances than lawn/timer.h says; no timer
 * or queue is looked at that a callback may have freed; lawn_next() is never
 * too late, 0 when something due is left, ahead when nothing is, and the
 * earliest deadline after lawn_settle(); and what src/timer/lawn_impl.h says of
 * checks, bits and alarms holds after each call.
 *
 * Abstracted: a round takes from the slots that are up in any order, from
 * either end, so all that the lanes of the code do is here, and more. Of the
 * number of a pass, what remains is whether it is this pass, one before, or one
 * before the round. The ends of time, observers, a drain and more than one
 * queue are test/model's.
 *
 * 2.7 million states; 12 with -DCALLS=5.
 */

#ifndef CALLS
#define CALLS 4
#endif

#include "slots.pml"
#include "lawn.pml"

/* The program. */
byte calls = CALLS;
bit is_restless;
bit is_first;         /* timer 1 of the restless, to be started */
byte way[TIMERS + 1]; /* in which a restless timer is started */
byte age;             /* advances that have left timer 1 due */

#define swap_in(field, t, u)                                                   \
    k = field[t];                                                              \
    field[t] = field[u];                                                       \
    field[u] = k

inline sort_two(t, u)
{
    if
    :: list[t] > list[u] || list[t] == list[u] && rank[t] > rank[u] ->
        swap_in(list, t, u);
        swap_in(rank, t, u);
        swap_in(deadline, t, u);
        swap_in(check, t, u);
        swap_in(owed, t, u);
        swap_in(is_new, t, u);
        swap_in(order, t, u);
        swap_in(in_turn, t, u)
    :: else
    fi
}

/* Which timer is which does not matter, unless one is watched. */
inline sort()
{
    d_step {
        if
        :: !is_restless ->
            sort_two(1, 2);
            sort_two(2, 3);
            sort_two(1, 2)
        :: else
        fi
    }
}

/* What a program does in a callback, or between advances. An idle timer is as
 * good as another, and comes first. */
inline choose_to_start(t)
{
    if
    :: is_restless -> t = (TIMERS - calls - is_first) % TIMERS + 1
    :: !is_restless -> t = 1
    :: !is_restless && is_linked(2) -> t = 2
    :: !is_restless && is_linked(3) -> t = 3
    fi
}

inline choose_linked(t)
{
    if
    :: is_linked(1) -> t = 1
    :: is_linked(2) -> t = 2
    :: is_linked(3) -> t = 3
    fi
}

#define may(t, how) (!is_restless || way[t] == (how))

inline start_somehow(t)
{
    if
    :: may(t, 0) -> start(t, now)
    :: may(t, 1) -> start(t, now + 1)
    :: may(t, 2) && queue_ttl != NO_QUEUE -> start_in_queue(t)
    :: may(t, 3) -> start(t, now + 15)
    fi;
    t = 0
}

inline call()
{
    if
    :: if
       :: who != 0 /* restarts itself */
       :: who == 0 -> choose_to_start(who)
       fi;
        if
        :: calls > 0 && !is_restless -> calls--; now++
        :: true
        fi;
        start_somehow(who)
    :: !is_restless && (is_linked(1) || is_linked(2) || is_linked(3)) ->
        choose_linked(who);
        if
        :: stop(who)
        :: owed[who] -> pause(who)
        fi;
        who = 0
    :: !is_restless && !busy -> settle(0)
    :: !is_restless && !busy -> settle(1)
    :: !is_restless && queue_ttl != NO_QUEUE -> destroy_queue()
    fi
}

inline choose()
{
    d_step {
        do
        :: choices != 0 || is_over && !is_firing -> break
        :: else ->
            if
            :: is_firing -> choose_from_queue()
            :: else -> choose_from_round()
            fi
        od
    }
}

inline leave()
{
    d_step {
        busy = false;
        open();
        /* Nothing that was due is left, unless the budget was. */
        is_enough = has_left;
        count_list(due);
        for (i : 1 .. TIMERS) {
            assert(!owed[i] || deadline[i] > pass_now ||
                   next == 0 && (is_new[i] || !is_enough))
        }
        assert(!is_enough || n > 0 || next > pass_now);
        /* Nor is it for long: far less than 8 (n / budget + q) + 8. */
        if
        :: is_restless && owed[1] && !is_new[1] && deadline[1] <= pass_now ->
            age++;
            assert(age < 2 * (TIMERS + 1))
        :: else -> age = 0
        fi;
        for (i : 1 .. TIMERS) {
            is_new[i] = 0
        }
        i = 0;
        pass_now = 0;
        budget = 0;
        spent = 0;
        touched = 0;
        is_last = false;
        is_over = false
    };
    check_lawn()
}

#define count_down(when) \
    when = (when >= before_round -> when : (when > CIRCLE -> when - CIRCLE : 0))

/* Which changes no slot. How late a timer in `due` is makes no difference. */
inline start_anew()
{
    d_step {
        if
        :: seen >= CIRCLE ->
            now = now - CIRCLE;
            seen = seen - CIRCLE;
            until = until - CIRCLE;
            count_down(wake);
            for (i : 1 .. NODES) {
                count_down(deadline[i]);
                count_down(check[i])
            }
            i = 0
        :: else
        fi;
        for (i : 1 .. NODES) {
            deadline[i] = (list[i] == due && wake == 0 && deadline[i] <= now
                           -> 0 : deadline[i])
        }
        i = 0
    }
}

/* lawn_advance(), maybe as of a reading of the clock that is not the latest. */
inline enter()
{
    start_anew();
    if
    :: is_restless && now >= wake && now < seen + CIRCLE -> now++
    :: now < wake -> now = wake
    :: now >= wake
    :: calls > 0 && !is_restless ->
        calls--;
        if
        :: now++
        :: now < wake -> now = wake + 2
        :: now < wake -> now = wake + CIRCLE
        fi
    fi;
    if
    :: pass_now = now
    :: calls > 0 && !is_restless && now > until && now > wake ->
        calls--;
        pass_now = now - 1
    fi;
    if
    :: wake <= pass_now ->
        d_step {
            busy = true;
            is_settled = false;
#ifndef FAULT_PASSES_HAVE_NO_NUMBER
            for (i : 1 .. NODES) {
                check[i] = (check[i] == this_pass -> since_round : check[i])
            }
#endif
            if
            :: until == seen -> begin_round()
            :: else
            fi
        };
        if
        :: !is_restless -> budget = 0
        :: budget = 1
        :: !is_restless -> budget = 2
        fi
    :: else -> pass_now = 0
    fi
}

active proctype program()
{
    byte who, choices;
    atomic {
        if
        :: true
        :: now = 3
        :: now = CIRCLE + 2
        fi;
        if
        :: queue_ttl = 0
        :: queue_ttl = 5
        fi;
        if
        :: true
        :: is_restless = true;
            calls = TIMERS;
            if
            :: is_first = true
            :: true
            fi;
            select(who : 0 .. 3);
            way[1] = who;
            select(who : 0 .. 2);
            way[2] = who;
            select(who : way[2] .. 2);
            way[3] = who;
            who = 0
        fi
    };
    do
    :: do
       :: atomic {
               calls > 0 || is_restless && who != 0 ->
               if
               :: is_restless && busy
               :: else -> calls--
               fi;
               call();
               sort()
           }
       :: who == 0 -> break
       od;
       atomic {
           if
           :: !busy && wake != NEVER && (!is_restless || calls == 0) -> enter()
           :: else
           fi
       };
       do
       :: busy ->
           atomic {
               choose();
               if
               :: choices & 2 -> who = 1
               :: choices & 4 -> who = 2
               :: choices & 8 -> who = 3
               :: choices & 16 -> who = ALARM
               :: choices == 0 -> leave(); break
               fi;
               choices = 0;
               touch(who);
               if
               :: who != 0 ->
                   who = (is_restless -> who : 0);
                   sort();
                   break
               :: else -> sort()
               fi
           }
       :: else -> break
       od
    od
}
