/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What a sleeping program asks of its transport first: transport_arm() and the
 * source of examples/pingpong/verbs_sources.c, or with `is_ucx` of ucx.c, under
 * the loop of pingpong.c. A device tells of a completion only once it was asked
 * to, of one completion for each time, and a little later than the completion
 * can be polled: three steps of the device, and anything may come in between.
 *
 *     write the completion -> was it asked to tell?  -> make the fd readable
 *
 * UCX is taken at its word: ucp_worker_arm() is one step, BUSY when there is
 * anything, and otherwise the worker's fd tells of what comes next.
 *
 * Checked: what has completed is polled, by a program that sleeps in vain only
 * for what it has already polled; no more than one event is ever outstanding,
 * so that the channel cannot overflow; a wake-up is for something new (the
 * assertions). The engine below is sleep.pml's: it sleeps until the fd is
 * readable, a timer is due or a signal comes.
 *
 * 4 thousand states.
 */

#define MOST 2 /* completions in the queue */

byte completions;
byte finishing;  /* of these, the device has yet to look whom to tell */
bool is_asked;   /* to tell of the next one */
byte on_its_way; /* events */
byte events;     /* the fd is readable */
bool is_ucx;
bool is_over;    /* no more completions, timers or signals */
bool work;       /* the latest pass has found some */

/* For the assertions. */
byte wakes; /* by the fd, since it became readable */

active proctype device()
{
    do
    :: atomic { !is_over && completions < MOST && finishing == 0 ->
            completions++;
            finishing++;
        }
    :: atomic { finishing > 0 ->
            finishing--;
            if
            :: is_asked -> is_asked = false; on_its_way++
            :: else
            fi
        }
    :: atomic { on_its_way > 0 ->
            on_its_way--;
            events++;
            wakes = 0;
            assert(events + on_its_way == 1) /* nobody asks twice */
        }
    :: !is_over -> is_over = true
    :: is_over && finishing == 0 && on_its_way == 0 -> break
    od
}

/* All of them, or a full batch and more to come. */
inline poll()
{
    atomic {
        work = completions > 0;
        if
        :: completions > 0 -> completions--
        :: completions = 0
        fi
    }
}

/* poll_cq(), with take_notification() and verbs_progress(). */
inline pass()
{
    if
    :: is_armed ->
        atomic {
            if
#ifndef FAULT_EVENTS_ARE_NOT_TAKEN
            :: events > 0 ->
                events = 0;
#ifndef FAULT_IT_STAYS_ARMED
                is_armed = false
#endif
#endif
            :: else
            fi
        }
    :: else
    fi;
    poll()
}

inline transport_arm()
{
    if
    :: is_armed -> may_sleep = true
    :: else ->
        is_asked = true; /* ibv_req_notify_cq() */
        is_armed = true;
#ifdef FAULT_NO_SECOND_PASS
        may_sleep = true
#else
        may_sleep = false
#endif
    fi
}

/* UCX: the fd is readable until the worker is armed again. */
inline ucp_worker_arm()
{
    atomic {
        may_sleep = (completions == 0 && finishing == 0 && on_its_way == 0 &&
                     events == 0);
        events = 0;
        is_asked = is_asked || may_sleep;
#ifdef FAULT_BUSY_IS_NO_REASON
        may_sleep = true
#endif
    }
}

/* progress_or_sleep() */
active proctype program()
{
    bool may_sleep, is_armed; /* never with UCX */
    if
    :: is_ucx = true
    :: true
    fi;
    do
    :: pass();
        if
        :: work
        :: else ->
            if
            :: is_ucx -> ucp_worker_arm()
            :: else -> transport_arm()
            fi;
            if
            :: may_sleep -> /* lawn_engine_wait() */
                atomic {
                    if
                    :: events > 0 ->
                        wakes++;
                        assert(wakes <= 1) /* it spins */
                    :: !is_over /* a timer, a signal */
                    fi
                }
            :: else
            fi
        fi
    od
}

ltl polled { [] (completions > 0 -> <> work) }
