/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A group: src/group/worker.cc and workers.cc, and of src/engine/sleep.cc and
 * thread.cc how a worker goes to sleep, is woken and ends. Two workers pass and
 * sleep; the second may be removed and come back; the first, a thread of the
 * library's, may be ended. Somebody moves the shard to and fro, and somebody
 * starts a timer in it. Each access to what is seen without the lock is a step,
 * and anything may come in between.
 *
 * Checked: one worker at a time has the shard; nobody wakes a worker that is
 * gone. When nothing more can happen, the shard is where it is to be; what was
 * started has been received, if somebody has the shard; and a thread that was
 * to end has ended.
 *
 * Abstracted: the box is a message that is there or not, and the tag
 * (test/model explores its steps); memory is sequentially consistent; a deadline
 * is always before the sleeper's.
 *
 * 13 million states.
 */

#ifndef STARTS
#define STARTS 1
#endif
#ifndef MOVES
#define MOVES 2
#endif

#define NOBODY 0

byte owner, wanted, bell;
bit orders[3], rung[3];
byte ringing[3];
bit is_removed[3]; /* nothing is to be moved to it */
bit gone[3];       /* and nobody wakes it any more */
bit has[3];        /* the worker's own word for it */
bit is_ending, has_ended;

/* The shard's box. */
bit message, asleep;

/* For the assertions. */
byte inside; /* workers that use the shard */
byte busy = 3; /* those that are not workers */

bit locked;

inline wake(w)
{
    atomic { assert(!gone[w]); rung[w] = true }
}

inline tell(w)
{
#ifdef FAULT_TELL_WAKES_FIRST
    wake(w);
    orders[w] = true
#else
    orders[w] = true;
    wake(w)
#endif
}

/* Under the lock: a shard that nobody owns is for `w`. */
inline offer(w)
{
#ifndef FAULT_THE_BELL_STAYS
    bell = w;
#endif
    if
    :: w != NOBODY ->
#ifndef FAULT_WHO_IS_TO_TAKE_IT_IS_NOT_TOLD
        tell(w)
#endif
    :: else
    fi
}

/* Somebody has taken the tag. */
inline ring(b)
{
    do
    :: atomic { bell == NOBODY -> b = 0 }; break
    :: atomic { bell != NOBODY -> b = bell };
        ringing[b]++;
        if
#ifdef FAULT_RING_DOES_NOT_LOOK_AGAIN
        :: true ->
#else
        :: bell != b -> ringing[b]--
        :: bell == b ->
#endif
            wake(b);
            atomic { ringing[b]--; b = 0 };
            break
        fi
    od
}

/* Threads that start timers. */
proctype starter()
{
    byte b, left = STARTS;
    do
    :: atomic { left > 0 -> left--; message = true }; /* and the tag stays */
        if
        :: atomic { asleep -> asleep = false };
            ring(b)
        :: !asleep
        fi
    :: left == 0 -> break
    od;
    busy--
}

proctype mover()
{
    byte w, left = MOVES;
    do
    :: atomic { left > 0 && !locked ->
            locked = true;
            left--;
            if
            :: !is_removed[1] -> w = 1
            :: !is_removed[2] -> w = 2
            :: is_removed[1] && is_removed[2] -> w = wanted
            fi;
            wanted = w
        };
        if
        :: owner == NOBODY -> offer(w)
#ifdef FAULT_THE_OWNER_IS_NOT_TOLD
        :: owner != NOBODY -> tell(w)
#else
        :: owner != NOBODY -> tell(owner)
#endif
        fi;
        atomic { w = NOBODY; locked = false }
    :: left == 0 -> break
    od;
    busy--
}

/* Under the lock. */
inline obey(w)
{
    if
    :: atomic { owner == w && wanted != w -> owner = NOBODY; has[w] = false };
        offer(wanted)
    :: owner != w || wanted == w
    fi;
    if
#ifdef FAULT_TAKES_WHAT_IS_OWNED
    :: wanted == w && !has[w] ->
#else
    :: owner == NOBODY && wanted == w ->
#endif
        owner = w;
        has[w] = true
    :: else
    fi
}

inline pass(w)
{
    if
    :: orders[w] ->
        if
        :: atomic { !locked -> locked = true; orders[w] = false };
            obey(w);
            locked = false
        :: locked /* in the next pass */
        fi
    :: !orders[w]
    fi;
    if
    :: has[w] ->
        atomic { inside++; assert(inside == 1) };
        atomic { message = false; asleep = false; inside-- }
    :: else
    fi
}

/* False: there is something to do. The thread has looked before the pass at
 * whether it ends. */
inline sleep(w, ends)
{
#ifndef FAULT_THE_TIMERFD_IS_SET_LAST
    rung[w] = false;
#endif
    if
    :: has[w] ->
        if
        :: atomic { message -> may_sleep = false }
        :: atomic { !message -> asleep = true; may_sleep = true }
        fi
    :: !has[w] -> may_sleep = true
    fi;
#ifndef FAULT_SLEEPS_THROUGH_ORDERS
    may_sleep = may_sleep && !orders[w];
#endif
#ifndef FAULT_SLEEPS_THROUGH_ITS_END
    may_sleep = may_sleep && !ends;
#endif
#ifdef FAULT_THE_TIMERFD_IS_SET_LAST
    rung[w] = false;
#endif
    if
    :: may_sleep ->
end_asleep:
        rung[w];
        rung[w] = false
    :: else
    fi;
    may_sleep = false
}

/* By the thread that runs it, or has waited for its end. */
inline dismiss(w, heir)
{
    atomic { !locked ->
        locked = true;
        is_removed[w] = true;
        concerns = (owner == w || wanted == w);
        if
#ifdef FAULT_THE_HEIR_MAY_BE_GONE
        :: wanted == w -> wanted = heir
#else
        :: wanted == w -> wanted = (is_removed[heir] -> NOBODY : heir)
#endif
        :: else
        fi;
        if
        :: owner == w -> owner = NOBODY; has[w] = false
        :: else
        fi
    };
    if
    :: concerns && owner == NOBODY -> offer(wanted)
    :: concerns && owner != NOBODY -> tell(owner)
    :: !concerns
    fi;
    atomic { concerns = false; locked = false };
#ifndef FAULT_REMOVES_UNDER_WHO_RINGS
    ringing[w] == 0;
#endif
    gone[w] = true
}

inline come_back(w)
{
    atomic { gone[w] = false; rung[w] = false; orders[w] = false };
    atomic { !locked -> locked = true; is_removed[w] = false };
    if
    :: atomic { wanted == NOBODY -> wanted = w };
        offer(w)
    :: wanted != NOBODY
    fi;
    locked = false
}

proctype ender()
{
    bit concerns;
    if
    :: is_ending = true;
        wake(1);
        has_ended;
        dismiss(1, 2)
    :: true
    fi;
    busy--
}

/* A thread of the library's. */
active proctype first()
{
    bit may_sleep;
    atomic {
        run starter();
        run mover();
        run ender()
    };
    do
    :: !is_ending -> pass(1); sleep(1, is_ending)
    :: is_ending -> break
    od;
    has_ended = true
}

/* A worker of the program's. */
active proctype second()
{
    bit concerns;
    bit may_sleep;
    bit may_leave = true;
    do
    :: pass(2); sleep(2, false)
    :: may_leave ->
        may_leave = false;
        dismiss(2, 1);
        come_back(2)
    od
}

/* Nothing more can happen. */
active proctype monitor()
{
    timeout;
    assert(has_ended == is_ending && busy == 0);
    assert(owner == wanted);
    assert(owner == NOBODY || !message)
}
