/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The calls of the lawn of advance.pml, and the steps of its pass, with what
 * must hold after each: src/timer/start.cc, queue.cc and advance.cc.
 */

/* For the assertions. */
inline leave_order(t)
{
    if
    :: order[t] != 0 ->
        for (i : 1 .. TIMERS) {
            order[i] = order[i] - (order[i] > order[t])
        }
        order[t] = 0
    :: else
    fi
}

inline has_started(t)
{
    owed[t] = 1;
    is_new[t] = busy;
    leave_order(t)
}

inline move_to(t, when)
{
    if
    :: is_linked(t) ->
        running = running + (deadline[t] == NEVER);
        unlink(t)
    :: else -> running++
    fi;
    deadline[t] = when;
    file(t)
}

/* lawn_timer_start(), inline or not. */
inline start(t, when)
{
    d_step {
        if
#ifdef FAULT_SETTLED_IS_NOT_CLOSED
        :: is_settled
#else
        :: is_settled -> open()
#endif
        :: else
        fi;
        if
#ifdef FAULT_ANY_REARM_IS_INLINE
        :: list[t] >= slots &&
#else
        :: is_linked(t) && (when) >= check[t] &&
#endif
                !(busy && (when) <= now) ->
#ifndef FAULT_A_RESUMED_TIMER_IS_NOT_COUNTED
            running = running + (deadline[t] == NEVER);
#endif
            deadline[t] = when
        :: else -> move_to(t, when)
        fi;
        has_started(t)
    };
    check_lawn()
}

inline rest(t)
{
    deadline[t] = NEVER;
    check[t] = 0
}

inline stop(t)
{
    d_step {
        running = running - (deadline[t] != NEVER);
        unlink(t);
        rest(t);
        owed[t] = 0;
        is_new[t] = 0;
        leave_order(t)
    };
    check_lawn()
}

inline pause(t)
{
    d_step {
        deadline[t] = NEVER;
        running--;
        owed[t] = 0;
        is_new[t] = 0;
        leave_order(t)
    };
    check_lawn()
}

inline set_alarm()
{
    assert(queue_ttl != NO_QUEUE); /* freed, perhaps */
    find(k, in_queue, 0);
    if
    :: k != 0 && !is_linked(ALARM) ->
        deadline[ALARM] = (deadline[k] == NEVER -> 0 : deadline[k]);
        file(ALARM)
    :: else
    fi
}

/* lawn_queue_start(), inline or not. */
inline start_in_queue(t)
{
    d_step {
        if
        :: is_settled -> open()
        :: else
        fi;
        running = running + (!is_linked(t) || deadline[t] == NEVER);
        if
#ifdef FAULT_A_RESTART_KEEPS_ITS_PLACE
        :: list[t] == in_queue
        :: list[t] != in_queue ->
#else
        :: true ->
#endif
            if
            :: is_linked(t) -> unlink(t)
            :: else
            fi;
            append(t, in_queue)
        fi;
        deadline[t] = now + queue_ttl;
#ifdef FAULT_A_QUEUE_DEFERS_NOTHING
        check[t] = before_round;
#else
#ifdef FAULT_A_REARM_STAYS_IN_THE_QUEUE
        check[t] = deadline[t];
#else
        check[t] = this_pass;
#endif
#endif
        set_alarm();
        has_started(t);
        order[t] = 1 + (order[1] != 0) + (order[2] != 0) + (order[3] != 0)
    };
    check_lawn()
}

/* lawn_queue_destroy() */
inline destroy_queue()
{
    d_step {
        for (j : 1 .. TIMERS) {
            if
            :: list[j] == in_queue ->
                running = running - owed[j];
                unlink(j);
                rest(j);
                owed[j] = 0;
                is_new[j] = 0;
                order[j] = 0
            :: else
            fi
        }
        if
        :: is_linked(ALARM) -> unlink(ALARM)
        :: else
        fi;
        rest(ALARM);
        is_marked = false;
        queue_ttl = NO_QUEUE;
#ifndef FAULT_A_QUEUE_IS_DESTROYED_UNNOTICED
        is_firing = false
#endif
    };
    check_lawn()
}

/* Looks at the timers of a list, while it may. Behind an alarm, the first of
 * the queue that is not paused is the earliest. */
inline search(which)
{
    n = 0;
    do
    :: find(j, which, n);
        if
        :: j == 0 -> break
        :: looks == 0 -> is_enough = false; break
        :: else -> looks--
        fi;
        best = (j == ALARM -> best : least(best, deadline[j]));
        k = (j == ALARM -> 0 : TIMERS);
        do
        :: k == TIMERS -> break
        :: else ->
            find(j, in_queue, k);
            if
            :: j == 0 -> break
            :: looks == 0 -> is_enough = false; break
            :: else -> looks--
            fi;
            best = least(best, deadline[j]);
            k = (deadline[j] == NEVER -> k + 1 : TIMERS)
        od;
        if
        :: is_enough -> n++
        :: else -> break
        fi
    od
}

/* lawn_settle() */
inline settle(max_touches)
{
    d_step {
        best = NEVER;
        looks = (max_touches == 0 -> NEVER : max_touches);
        is_enough = true;
        search(due);
        c = 0;
        bits = filled & bits_of_class(0);
        do
        :: !is_enough || c == CLASSES -> break
        :: else ->
            begin = NEVER;
            if
            :: bits != 0 -> first_begin(c, bits)
            :: else
            fi;
            if
#ifdef FAULT_SETTLE_LOOKS_AT_ONE_SLOT
            :: begin >= best || best != NEVER ->
#else
            :: begin >= best ->
#endif
                c++;
                bits = filled & bits_of_class(c)
            :: else ->
                where = slot_of(c, begin);
                bits = bits & ~bit_of(where);
                search(slots + where)
            fi
        od;
        is_enough = is_enough && best > now;
        if
        :: is_enough ->
            wake = best;
            is_settled = true
        :: else ->
            count_list(due);
            if
            :: until == seen && n == 0 ->
                first_slot();
                wake = (best > wake -> best : wake)
            :: else
            fi
        fi;
        /* The earliest deadline. */
        best = NEVER;
        for (i : 1 .. TIMERS) {
            best = (owed[i] -> least(best, deadline[i]) : best)
        }
        assert(!is_enough || next == best);
        assert(is_enough || max_touches != 0 || best <= now)
    };
    check_lawn()
}

/* lawn_check(), and that lawn_next() is never too late. */
inline check_lawn()
{
    d_step {
        assert(seen <= until && until <= now);
        n = 0;
        for (i : 1 .. NODES) {
            n = n + owed[i];
            assert(i == ALARM ||
                   owed[i] == (is_linked(i) && deadline[i] != NEVER));
            assert(!owed[i] || next <= deadline[i]);
            if
            :: list[i] >= slots ->
                where = list[i] - slots;
                c = where / SLOTS;
                assert(filled & bit_of(where));
                assert(occupied & (1 << c));
                assert(check[i] <= deadline[i]);
                assert(slot_of(c, check[i]) == where);
                assert(check[i] % (1 << c) == 0);
                assert(until != seen || check[i] > seen);
                assert(busy || is_settled || deadline[i] == NEVER ||
                       wake <= check[i])
            :: list[i] == in_queue ->
                assert(queue_ttl != NO_QUEUE && check[i] >= before_round);
                assert(is_linked(ALARM) && deadline[ALARM] <= deadline[i])
            :: list[i] == due ->
                assert(check[i] >= before_round);
                assert(busy || deadline[i] <= now || deadline[i] == NEVER)
            :: else
            fi;
            for (j : 1 .. NODES) {
                assert(!is_linked(i) || list[i] != list[j] || i == j ||
                       rank[i] != rank[j]);
                assert(!is_linked(i) || list[i] != list[j] ||
                       rank[i] >= rank[j] ||
                       (list[i] == in_queue -> deadline[i] == NEVER ||
                                               deadline[i] <= deadline[j]
                                             : check[i] <= check[j]))
            }
        }
        assert(n == running);
        i = 0
    }
}

#define has_work(head)                                                         \
    (head != 0 && check[head] != this_pass &&                                  \
     (deadline[head] <= pass_now || deadline[head] == NEVER))

inline move_mark(to_tail)
{
    is_marked = to_tail;
    for (i : 1 .. NODES) {
        in_turn[i] = to_tail && list[i] == in_queue
    }
}

/* Before what a round may leave in `due`. */
inline put_first(t)
{
    for (i : 1 .. NODES) {
        rank[i] = rank[i] + (list[i] == due)
    }
    list[t] = due;
    rank[t] = 0;
    deadline[t] = 0;
    check[t] = before_round
}

/* touch(). `t` is 0 afterwards unless it calls back. */
inline touch(t)
{
    d_step {
        assert(is_linked(t)); /* freed, perhaps */
        unlink(t);
        if
        :: budget != 0 ->
            spent++;
            touched = touched + (t != ALARM);
            assert(touched <= budget)
        :: else
        fi;
        if
#ifdef FAULT_A_TICK_EARLY
        :: deadline[t] > pass_now + 1 ->
#else
        :: deadline[t] > pass_now ->
#endif
#ifdef FAULT_WHAT_MOVES_IS_NOT_COUNTED
            spent = spent - (budget != 0);
#endif
            if
            :: deadline[t] == NEVER -> rest(t)
            :: else -> file(t)
            fi;
            t = 0
        :: else ->
            if
            :: t == ALARM -> /* on_alarm() */
                is_firing = true;
                if
#ifndef FAULT_THE_TURN_OF_A_QUEUE_HAS_NO_END
                :: !is_marked -> move_mark(1)
                :: else
#else
                :: true -> move_mark(1)
#endif
                fi;
                has_touched = false;
                spent = spent - (budget != 0);
                put_first(t);
                t = 0
            :: else ->
                assert(owed[t]);                 /* once, and not stopped */
                assert(deadline[t] <= pass_now); /* early */
                assert(!is_new[t]);              /* it could spin */
                for (i : 1 .. TIMERS) {
                    assert(order[t] == 0 || order[i] == 0 ||
                           order[i] >= order[t])
                }
                running--;
                rest(t);
                owed[t] = 0;
                leave_order(t)
            fi
        fi
    };
    check_lawn()
}

/* Sets `choices`, a bit per timer, to what on_alarm() may touch next. */
inline choose_from_queue()
{
    find(j, in_queue, 0);
    is_marked = is_marked && j != 0 && in_turn[j];
    if
    :: has_left && has_work(j) ->
        choices = 1 << j;
        has_touched = true
    :: else ->
        is_firing = false;
        spent = spent + (budget != 0 && !has_touched);
        has_touched = false;
        if
        :: has_work(j) && is_marked
        :: else ->
            move_mark(0);
            unlink(ALARM);
            set_alarm()
        fi
    fi
}

#define is_up(t, c)                                                            \
    (list[t] >= slots && (filled & bit_of(list[t] - slots)) &&                 \
     (occupied & (1 << (c))) &&                                                \
     is_begun(c, (list[t] - slots) % SLOTS, seen, until) && check[t] <= until)

#ifdef FAULT_DUE_IS_ALWAYS_FIRST
#define is_due_up(t) ((t) != 0 && check[t] != this_pass)
#else
#ifdef FAULT_NOTHING_IS_DEFERRED
#define is_due_up(t) ((t) != 0)
#else
#define is_due_up(t) ((t) != 0 && check[t] == before_round)
#endif
#endif

inline begin_round()
{
    is_last = true;
    until = (seen < pass_now -> pass_now : seen);
#ifndef FAULT_A_ROUND_HAS_NO_NUMBER
    for (i : 1 .. NODES) {
        check[i] = (check[i] == since_round -> before_round : check[i])
    }
#endif
}

/* What is left in the begun slots is not up. */
inline end_round()
{
    for (c : 0 .. CLASSES - 1) {
        for (k : 0 .. SLOTS - 1) {
            where = SLOTS * c + k;
            count_list(slots + where);
            if
#ifdef FAULT_A_LATE_SLOT_LOSES_ITS_BIT
            :: is_begun(c, k, seen, until) ->
#else
            :: is_begun(c, k, seen, until) && n == 0 ->
#endif
                filled = filled & ~bit_of(where)
            :: else
            fi
        }
#ifdef FAULT_A_CLASS_LOSES_ITS_BIT_EARLY
        occupied = occupied & ~(1 << c)
#else
        if
        :: (filled & bits_of_class(c)) == 0 -> occupied = occupied & ~(1 << c)
        :: else
        fi
#endif
    }
    seen = until
}

/* work_round(): first in `due`, then a head of a slot, or a tail that is up. */
inline choose_from_round()
{
#ifdef FAULT_DUE_IS_TAKEN_FROM_THE_TAIL
    count_list(due);
    k = n - 1;
    find(j, due, k);
#else
    find(j, due, 0);
#endif
    if
    :: is_due_up(j) && has_left -> choices = 1 << j
    :: else ->
#ifdef FAULT_A_ROUND_HAS_NO_END
        until = pass_now;
#endif
        for (j : 1 .. NODES) {
            c = (list[j] >= slots -> (list[j] - slots) / SLOTS : 0);
            if
            :: is_up(j, c) ->
                count_list(list[j]);
                if
                :: rank[j] == 0 || rank[j] == n - 1 ->
                    choices = choices | (1 << j)
                :: else
                fi
            :: else
            fi
        }
    fi;
    if
    :: choices == 0 ->
        end_round();
        if
        :: is_last -> is_over = true
        :: else -> begin_round()
        fi
    :: choices != 0 && !has_left ->
        choices = 0;
        is_over = true
    :: else
    fi
}
