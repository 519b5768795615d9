/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Timers in shared memory: src/shm/. Two processes take slots, start, stop and
 * release timers, and read what has expired; the first may be killed between
 * any two of its steps. The owner passes, sleeps, has timers go on, and sweeps
 * what the dead had, which the second may take then. Each access to what they
 * share is a step, and anything may come in between.
 *
 * There are four kinds of program, each of a few calls: two clients with two
 * slots, whose owner takes one message in a pass; one of two threads instead,
 * which is not killed; the same with one slot, and earlier and later deadlines;
 * one slot and one place for a client, to which both come in turn.
 *
 * Checked: no start fires early, nor after it was stopped, superseded or has
 * fired; an event is of a start that has fired, is read once, and by its
 * client; a slot is in the messages once at most, and so in its client's list;
 * one that is taken is as new, and in neither; one that is swept is not in the
 * messages; one that is released does not expire; the owner sleeps no later
 * than until the earliest deadline, unless somebody is about to wake it. When
 * nothing more can happen, all starts have ended, all events were read, and free
 * is what was released or the dead had.
 *
 * Abstracted: memory is sequentially consistent; a loop of compare and swap is
 * the step with which it succeeds, but for a push; what nobody else can look at
 * is part of another step, as are the stores of a sweep. Time goes by when the
 * owner passes or sleeps, and it looks for clients when there is something to
 * see. Who closes is swept as the dead are; the owner does not end.
 *
 * 8 million states.
 */

#ifndef CALLS
#define CALLS 3
#endif

#define INFINITY 3

/* In a list's head, and in a slot's flags. */
#define ASLEEP 4
#define POSTED 1
#define FIRED 2
#define RELEASED 4
#define DONE 8

/* The slots, from 1; 0 is none. */
byte deadline[3] = INFINITY, cover[3] = INFINITY, expired[3] = INFINITY;
byte flags[3], client[3], next_message[3], next_fired[3];

/* The clients: their lists, and which process has the place. */
byte fired[3], place[3];

/* The header. */
byte messages, wake_at;
bit joined; /* it is not what the owner has seen */

/* FIFOs; whether there is the first client's, and what the owner has opened. */
bit bell, fifo[3], is_made, is_open[3], is_watched;
byte plain[3] = INFINITY; /* the owner's plain timers */

/* The program. */
byte now, last = 1, slots = 1, calls = CALLS;
bit has_budget, has_threads, has_joins;

/* For the assertions. */
byte has[3];    /* whose the slot is, until it is released */
bit lives[3];   /* a start that has not ended */
bit unread[3];  /* its event */
bit in_box[3];  /* it is in the messages, or what was taken of them */
bit in_list[3]; /* in its client's list, or what was taken of that */
bit inside[3];  /* a process is in a call that may ring */
bit waits[3];   /* it does nothing before it is woken */
bit sleeps;     /* the owner, for ever */
byte killed;    /* the first process */

#define DYING 1 /* before anybody else has a step */
#define DEAD 2

#define number(head) ((head) & 3)
#define least(a, b) ((a) < (b) -> (a) : (b))
#define next_due least(plain[1], plain[2])
#define is_dead (killed && place[1] == 1)
#define is_ready (is_dead && is_watched) /* the pidfd */
#define is_free(t) (client[t] == 0 && t <= slots)
#define own (has[2] == c -> 2 : 1)
#define may_call (calls > 0 && (has[1] == c || has[2] == c))
#define may_read (!has_threads || me == 1)
#define may_wait (calls == 0 || client[1] == c || client[2] == c)

inline push(list, next, is_in)
{
    atomic { head = list; next = number(head) };
    do
    :: atomic { list == head ->
            assert(!is_in);
            is_in = true; list = t | (head & ASLEEP); head = head & ASLEEP;
            break
        }
    :: atomic { list != head -> head = list; next = number(head) }
    od
}

#define end_call() inside[me] = false; releases = false; when = 0; goto over
#define set_flags() flags[t] = flags[t] | POSTED | (releases -> RELEASED : 0)

inline post()
{
    if
    :: atomic { flags[t] & POSTED -> set_flags() }
#ifdef FAULT_PUSHED_BEFORE_IT_IS_POSTED
    :: atomic { !(flags[t] & POSTED) };
        push(messages, next_message[t], in_box[t]);
        atomic { set_flags() }
#else
    :: atomic { !(flags[t] & POSTED) -> set_flags() };
        push(messages, next_message[t], in_box[t])
#endif
    fi;
    atomic {
#if defined(FAULT_RING_DOES_NOT_LOOK_AGAIN)
        when = (releases -> 0 : d);
#elif defined(FAULT_A_RELEASE_DOES_NOT_RING)
        when = deadline[t];
#else
        when = (flags[t] & RELEASED -> 0 : deadline[t]);
#endif
        head = 0; t = 0; d = 0
    };
    if /* ring() */
    :: atomic { !(messages & ASLEEP) -> end_call() }
    :: atomic { messages & ASLEEP }
    fi;
    atomic { rings = (when < wake_at) };
    atomic {
        rings = rings && (messages & ASLEEP);
        messages = messages & ~(rings -> ASLEEP : 0)
    };
    atomic { bell = bell | rings; rings = false; end_call() }
}

/* Of the first in its list. */
inline next()
{
    atomic { was = flags[t]; flags[t] = was & ~FIRED; in_list[t] = false };
    atomic {
        assert(was & RELEASED || expired[t] == INFINITY ||
               unread[t] && expired[t] <= now && has[t] == c);
        expired[t] = INFINITY; unread[t] = false;
        if
        :: was & DONE -> was = 0
        :: else -> was = 0; t = 0; goto over
        fi
    };
    atomic { assert(flags[t] == (RELEASED | DONE)); flags[t] = 0 };
    atomic { client[t] = 0; t = 0 }
}

/* Its place is `c`; 0: it finds none, rings for that, and gets the first. */
proctype process(byte me, c) provided (killed != DYING || _pid == 1)
{
    byte t, d, when, head, taken, was;
    bit releases, rings;
    if
    :: c != 0
    :: atomic { c == 0 && (!is_made || killed) -> joined = true };
        atomic { bell = true; waits[2] = true };
end_no_room:
        atomic { place[1] == 0 -> place[1] = 2; c = 1; waits[2] = false }
    fi;
    {
        if
        :: !has_joins
        :: atomic { has_joins -> is_made = true };
            atomic { joined = true };
            atomic { bell = true }
        fi;
over:
        do /* alloc, start, release, stop, next, wait */
        :: atomic { calls > 0 && (is_free(1) || is_free(2)) ->
                t = (is_free(1) -> 1 : 2);
                assert(flags[t] == 0 && deadline[t] == INFINITY);
                assert(cover[t] == INFINITY && plain[t] == INFINITY);
                assert(expired[t] == INFINITY && !in_box[t] && !in_list[t]);
                client[t] = c; has[t] = c; t = 0
            }
        :: atomic { may_call ->
                calls--; inside[me] = true; t = own;
                select (d : 1 .. last);
                deadline[t] = d; lives[t] = true
            };
            if
            :: atomic { d >= cover[t] -> t = 0; d = 0; end_call() }
            :: atomic { d < cover[t] -> goto posts }
            fi
        :: atomic { may_call && !has_threads ->
                calls--; inside[me] = true; t = own; releases = true;
                deadline[t] = INFINITY; lives[t] = false;
                unread[t] = false; has[t] = 0;
                goto posts
            }
        :: atomic { may_call ->
                calls--;
                assert(deadline[own] == INFINITY || lives[own]);
                deadline[own] = INFINITY; lives[own] = false
            }
        :: atomic { may_read && (taken != 0 || number(fired[c]) != 0) ->
                if
                :: taken == 0 -> taken = fired[c]; fired[c] = 0
                :: else
                fi;
                t = taken; taken = next_fired[t]; next_fired[t] = 0
            };
            next()
        :: atomic { may_read && taken == 0 && fired[c] == 0 && may_wait ->
                fired[c] = ASLEEP; waits[me] = true
            };
end_waits:
            if
            :: atomic { fifo[c] -> waits[me] = false }
            :: atomic { has_threads && calls > 0 -> calls--; waits[me] = false }
            fi;
            atomic { fired[c] = number(fired[c]) };
            atomic { fifo[c] = false }
        :: atomic { calls == 0 && !may_read -> waits[me] = true; break }
        od;
end_over:
        false;
posts:
        post()
    } unless {
        atomic { killed == DYING && me == 1 ->
            c = 0; t = 0; d = 0; when = 0; head = 0; taken = 0; was = 0;
            releases = false; rings = false; killed = DEAD
        }
    }
}

/* The owner's cover(). */
inline lower_cover()
{
    atomic { seen = deadline[t] };
    atomic { plain[t] = least(seen, cover[t]); cover[t] = plain[t]; seen = 0 }
}

inline deliver(flag)
{
    if
    :: atomic { flags[t] & FIRED -> flags[t] = flags[t] | flag }
    :: atomic { !(flags[t] & FIRED) ->
            flags[t] = flags[t] | FIRED | flag;
            c = client[t]; assert(c != 0)
        };
        push(fired[c], next_fired[t], in_list[t]);
        if
        :: atomic { !(head & fired[c]) -> c = 0; head = 0 }
        :: atomic { head & fired[c] -> fired[c] = number(fired[c]); head = 0 };
            atomic { fifo[c] = fifo[c] | is_open[c]; c = 0 }
        fi
    fi
}

/* And goes_on(). */
inline on_expired()
{
    atomic {
        seen = deadline[t];
        assert(seen > now || lives[t]);
        lives[t] = lives[t] && seen > now;
        deadline[t] = (seen > now -> seen : INFINITY)
    };
#ifdef FAULT_COVER_IS_RAISED_LATE
    atomic { cover[t] = INFINITY };
#endif
    if
    :: seen > now -> lower_cover()
#ifdef FAULT_WHAT_IS_RELEASED_EXPIRES
    :: atomic { seen <= now -> assert(!(flags[t] & RELEASED)) };
#else
    :: atomic { seen <= now && flags[t] & RELEASED -> seen = 0 }
    :: atomic { seen <= now && !(flags[t] & RELEASED) };
#endif
        if
        :: atomic { deadline[t] == INFINITY && !has_threads && calls > 0 ->
                calls--; deadline[t] = last; lives[t] = true
            };
            lower_cover()
        :: true ->
#ifdef FAULT_EXPIRED_IS_STORED_LATE
            deliver(0);
#endif
            atomic { expired[t] = seen; unread[t] = (has[t] != 0); seen = 0 };
#ifndef FAULT_EXPIRED_IS_STORED_LATE
            deliver(0)
#endif
        fi
    fi
}

#define clear_posted() flags[t] = flags[t] & ~POSTED; in_box[t] = false

inline receive()
{
    if
#ifdef FAULT_POSTED_IS_CLEARED_LATE
    :: atomic { !(flags[t] & RELEASED) };
        lower_cover();
        atomic { clear_posted() }
#else
    :: atomic { !(flags[t] & RELEASED) -> clear_posted() };
        lower_cover()
#endif
    :: atomic { flags[t] & RELEASED ->
            clear_posted();
            plain[t] = INFINITY; cover[t] = INFINITY;
            deadline[t] = INFINITY; lives[t] = false
        };
#ifdef FAULT_THE_OWNER_FREES
        atomic { flags[t] = 0; client[t] = 0 }
#else
        deliver(DONE)
#endif
    fi
}

#if defined(FAULT_SWEEP_DOES_NOT_DRAIN)
#define must_stop (sweeps || has_budget && has_received)
#elif defined(FAULT_SWEEP_DRAINS_BY_A_BUDGET)
#define must_stop (has_budget && has_received)
#else
#define must_stop (has_budget && has_received && !sweeps)
#endif

inline drain()
{
    do
    :: atomic { taken != 0 && !must_stop ->
            t = taken; has_received = true;
#ifndef FAULT_NEXT_MESSAGE_IS_READ_LATE
            taken = next_message[t]; next_message[t] = 0
#endif
        };
        receive();
#ifdef FAULT_NEXT_MESSAGE_IS_READ_LATE
        taken = next_message[t]
#endif
    :: atomic { taken == 0 && !has_taken && messages != 0 ->
            has_taken = true; taken = number(messages); messages = 0
        }
    :: atomic { (taken != 0 -> must_stop : has_taken || messages == 0) ->
            has_taken = false; has_received = false;
            break
        }
    od
}

inline welcome()
{
    atomic {
        sweeps = is_dead && !is_watched;
        is_watched = is_watched || place[1] != 0 && !is_dead
    };
    atomic {
#ifndef FAULT_A_WELCOME_WAKES_NOBODY
        fifo[1] = fifo[1] | (is_made && !is_open[1]);
#endif
        is_open[1] = is_made
    }
}

/* Of all that the first client had, after a drain. */
inline sweep()
{
    for (t : 1 .. 2) {
        if
        :: client[t] == 1 ->
            assert(!in_box[t]);
#ifndef FAULT_SWEEP_LEAVES_THE_PLAIN_TIMER
            plain[t] = INFINITY;
#endif
            cover[t] = INFINITY; deadline[t] = INFINITY; expired[t] = INFINITY;
            flags[t] = 0; client[t] = 0; next_message[t] = 0; next_fired[t] = 0;
            has[t] = 0; lives[t] = false; unread[t] = false; in_list[t] = false
        :: else
        fi
    }
    t = 0;
#ifndef FAULT_THE_LIST_OF_THE_DEAD_STAYS
    fired[1] = 0;
#endif
    is_made = false; is_open[1] = false; fifo[1] = false; /* forget() */
    is_watched = false; place[1] = 0
}

/* poll() with look(), and an advance */
inline pass()
{
    if
    :: atomic { !has_slept && !joined -> select (now : now .. last) }
    :: atomic { has_slept || joined || bell || is_ready ->
            select (now : now .. last);
            has_slept = false; bell = false; sweeps = is_ready
        };
looks:
        if
        :: atomic { sweeps || !joined }
        :: atomic { !sweeps && joined -> joined = false; has_looked = true };
            welcome()
        fi
    fi;
drains:
    drain();
    do
    :: atomic { sweeps ->
            sweep(); sweeps = false;
            if
            :: has_looked -> goto drains
            :: else -> goto looks
            fi
        }
    :: atomic { !sweeps && next_due <= now ->
            t = (plain[1] <= now -> 1 : 2);
            plain[t] = INFINITY;
#ifndef FAULT_COVER_IS_RAISED_LATE
            cover[t] = INFINITY
#endif
        };
        on_expired()
    :: atomic { !sweeps && next_due > now -> has_looked = false; t = 0; break }
    od
}

inline sleep()
{
#ifdef FAULT_SLEEPS_ON_WHAT_IS_LEFT
    atomic { next_due > now ->
#else
    atomic { next_due > now && taken == 0 ->
#endif
        has_slept = true;
        until = next_due;
        if
        :: has_threads && now < last -> until = least(until, now + 1)
        :: true
        fi;
        wake_at = until
    };
    if
    :: atomic { number(messages) != 0 -> until = 0 }
    :: atomic { number(messages) == 0 -> messages = ASLEEP };
        if
        :: atomic { joined -> until = 0 }
        :: atomic { !joined -> sleeps = (until == INFINITY) };
end_asleep:
            if
            :: atomic { bell || is_ready -> sleeps = false; until = 0 }
            :: atomic { !bell && !is_ready && until != INFINITY ->
                    assert(inside[1] || inside[2] ||
                           least(deadline[1], deadline[2]) >= until);
                    now = until; until = 0
                }
            fi
        fi
    fi
}

active proctype owner() provided (killed != DYING)
{
    byte t, c, head, seen, taken, until;
    bit has_taken, has_received, has_slept, has_looked, sweeps;
    atomic {
        if
        :: slots = 2; has_budget = true; calls--
        :: has_threads = true; slots = 2; has_budget = true
        :: has_threads = true; last = 2
        :: has_joins = true
        fi;
        place[1] = 1; place[2] = (has_joins -> 0 : 2); is_open[2] = true;
        is_made = !has_joins; is_watched = is_made; is_open[1] = is_made;
        run process(1, 1);
        run process(2, (has_joins -> 0 : (has_threads -> 1 : 2)));
        run monitor()
    };
    do
    :: pass()
    :: sleep()
    od
}

/* Kills, and looks when nothing more can happen. */
proctype monitor()
{
end_monitor:
    do
    :: atomic { !killed && !has_threads ->
            killed = DYING; inside[1] = false; waits[1] = true
        }
    :: atomic { sleeps && !bell && !is_ready && waits[1] && waits[2] &&
            !fifo[1] && !fifo[2] && place[1] + place[2] != 0 ->
            assert(least(deadline[1], deadline[2]) == INFINITY);
            assert(!unread[1] && !unread[2] && !is_dead);
            assert(number(fired[1]) == 0 && number(fired[2]) == 0);
            assert(client[1] == has[1] && client[2] == has[2]);
            break
        }
    od
}
