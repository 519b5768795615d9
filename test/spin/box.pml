/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What shared.pml is made of: the box, and the steps of shared_ops.h that are
 * about one timer. Each atomic is one: an access to what others see, together
 * with what is the thread's own and what is there for the assertions.
 */

#define TIMERS 2
#define INFINITY 3

/* The timers, from 1; 0 is a null pointer. */
byte deadline[TIMERS + 1] = INFINITY;
byte cover[TIMERS + 1] = INFINITY; /* and what the plain timer stands at */
bit posted[TIMERS + 1];
bit retired[TIMERS + 1];
byte next[TIMERS + 1];

/* The box. Its head is one word, a pointer and two tags. */
byte top;
bit asleep, closed;
byte wake_at, ringing, running;
byte users = TIMERS + 1;
bit same_run[3]; /* `runs` is still what this thread has read */

/* The timerfd. */
bit sleeps; /* the owner, from when it sets it */
bit rung;   /* it has run out, by a wake() */

/* For the assertions. */
bit lives[TIMERS + 1]; /* a start that has not ended */
bit owed[TIMERS + 1];  /* its callback, by this pass */
bit in_box[TIMERS + 1];
bit out[TIMERS + 1];        /* retired, and about to be released */
bit gone[TIMERS + 1];       /* `released` was called, and has freed it */
bit retires[TIMERS + 1];    /* a retire is under way */
bit is_retired[TIMERS + 1]; /* it has returned */
byte inside[TIMERS + 1];    /* threads in other calls */
byte called;                /* whose start was taken, to call back */
bit awaits[3];              /* a thread, in sync, the end of that */
byte waking;                /* threads that have taken the tag away */
bit is_destroyed, is_freed;

#define is_quiet(t) (inside[t] == 0 && !retires[t])
#define touch(t) assert(!gone[t] && !is_freed)
#define touch_box() assert(!is_freed)

/* Parts of steps. */
inline count_down_users()
{
    touch_box();
    users--;
    is_freed = (users == 0)
}

inline put_start(t, d)
{
    touch(t);
    deadline[t] = d;
    lives[t] = true;
    owed[t] = false
}

inline put_infinity(t)
{
    touch(t);
    deadline[t] = INFINITY;
    lives[t] = false
}

/* An exchange, which tells that the start has ended so and not otherwise. */
inline take_start(t)
{
    touch(t);
    if
    :: deadline[t] != INFINITY ->
        assert(lives[t]);
        lives[t] = false;
        owed[t] = false
    :: else
    fi;
    deadline[t] = INFINITY
}

inline put_in_box(t)
{
    touch_box();
    touch(t);
    assert(!in_box[t]);
    in_box[t] = true;
    next[t] = top;
#ifdef FAULT_PUSH_LOSES_THE_TAG
    asleep = false;
#endif
    top = t
}

inline take_posted(t)
{
    touch(t);
    posted[t] = false;
    out[t] = retired[t]
}

inline end_start(is_true)
{
    assert(!is_true || !is_dead);
    inside[t]--;
    t = 0;
    d = 0;
    starts = false;
    is_dead = false
}

inline end_sync()
{
    touch_box();
    assert(!awaits[_pid]);
    same_run[_pid] = false;
    inside[t]--;
    t = 0
}

/* By a drop. */
inline end_retire()
{
#ifndef FAULT_RETIRE_HOLDS_NO_BOX
    count_down_users();
#endif
    retires[t] = false;
    is_retired[t] = true;
    t = 0
}

/* A start has no more to do. */
inline end_ring()
{
    touch_box();
    if
    :: starts -> end_start(true); goto over
    :: else
    fi
}

inline hold()
{
    atomic {
        touch_box();
#ifndef FAULT_RETIRE_HOLDS_NO_BOX
        users++
#endif
    }
}

inline wake()
{
    atomic { assert(!is_destroyed); waking--; rung = sleeps }
}

inline ring(when)
{
    if
    :: atomic { asleep -> touch_box() };
        if
        :: atomic { when < wake_at -> touch_box() };
            atomic { touch_box(); ringing++ };
            if
            :: atomic { asleep -> touch_box(); asleep = false; waking++ };
                wake()
            :: atomic { !asleep -> touch_box() }
            fi;
            atomic { ringing--; end_ring() }
        :: atomic { when >= wake_at -> end_ring() }
        fi
    :: atomic { !asleep -> end_ring() }
    fi
}

/* When no other than `own` calls are inside. */
inline let_go(t, own)
{
    atomic { inside[t] == own ->
        touch(t);
        assert(out[t] && !in_box[t] && called != t);
        gone[t] = true;
        deadline[t] = INFINITY; /* which makes no difference */
        lives[t] = false
    };
    atomic { count_down_users() }
}

/* In a start, one of the calls that are inside. */
inline take_back(t)
{
    atomic { put_infinity(t) };
#ifdef FAULT_TAKE_BACK_FORGETS_THE_RETIRED
    atomic { touch(t); posted[t] = false; end_start(false); goto over }
#else
    if
    :: atomic { !retired[t] -> take_posted(t); end_start(false); goto over }
    :: atomic { retired[t] -> take_posted(t) };
        let_go(t, 1);
        atomic { end_start(false); goto over }
    fi
#endif
}

/* A start rings also for those who have found the timer posted, and looked at
 * the tag too soon. 0 is for a retire. */
inline look_again(t, d)
{
#ifndef FAULT_START_DOES_NOT_RING_FOR_A_RETIRE
    if
    :: atomic { retired[t] -> touch(t); d = 0; goto rings }
    :: atomic { !retired[t] -> touch(t) }
    fi;
#endif
#ifndef FAULT_RING_DOES_NOT_LOOK_AGAIN
    atomic { touch(t); d = deadline[t] }
#endif
}

inline start(t, d)
{
#ifdef FAULT_COVER_IS_LOADED_FIRST
    if
    :: atomic { d >= cover[t] -> touch(t) };
        atomic { put_start(t, d); end_start(true); goto over }
    :: atomic { d < cover[t] -> touch(t) };
        atomic { put_start(t, d) }
    fi;
#else
    atomic { put_start(t, d) }; /* an exchange */
    if
    :: atomic { d >= cover[t] -> touch(t); end_start(true); goto over }
    :: atomic { d < cover[t] -> touch(t) }
    fi;
#endif
    if
    :: atomic { closed -> touch_box() };
        atomic { put_infinity(t); end_start(false); goto over }
    :: atomic { !closed -> touch_box() }
    fi;
    if
#ifdef FAULT_WHO_FINDS_IT_POSTED_DOES_NOT_RING
    :: atomic { posted[t] -> touch(t); end_start(true); goto over }
#else
    :: atomic { posted[t] -> touch(t) }
#endif
#ifdef FAULT_START_PUSHES_THE_RETIRED
    :: atomic { !posted[t] -> touch(t); posted[t] = true };
#else
    :: atomic { !posted[t] && retired[t] -> touch(t); posted[t] = true }
    :: atomic { !posted[t] && !retired[t] -> touch(t); posted[t] = true };
#endif
        if
        :: atomic { closed -> touch_box() };
            take_back(t)
        :: atomic { !closed -> put_in_box(t) }
        fi
    fi;
    look_again(t, d)
}

inline sync(t)
{
    do
    :: atomic { running == t -> touch_box() };
        if
        :: atomic { same_run[_pid] -> touch_box() };
            (running != t || !same_run[_pid]) /* a pause */
        :: atomic { !same_run[_pid] -> end_sync(); goto over }
        fi
    :: atomic { running != t -> end_sync(); goto over }
    od
}

inline retire(t)
{
    hold();
#ifndef FAULT_RETIRE_STOPS_LATE
    atomic { take_start(t) };
#endif
    if
    :: atomic { posted[t] -> touch(t); retired[t] = true };
#ifdef FAULT_RETIRE_ALWAYS_PUSHES
        atomic { put_in_box(t) }
#endif
    :: atomic { !posted[t] -> touch(t); posted[t] = true; retired[t] = true };
        if
        :: atomic { closed -> touch_box() };
            atomic { put_infinity(t) }; /* take_back() */
            atomic { take_posted(t) };
            let_go(t, 0)
        :: atomic { !closed -> put_in_box(t) }
        fi
    fi
#ifdef FAULT_RETIRE_STOPS_LATE
    ;
    atomic { take_start(t) }
#endif
}

/* The owner's. */
inline lower_cover(t)
{
    atomic { touch(t); seen = deadline[t] };
    atomic {
        if
        :: seen < cover[t] -> touch(t); cover[t] = seen; due[t] = false
        :: else
        fi;
        seen = 0
    }
}

inline raise_cover(t)
{
    touch(t);
    cover[t] = INFINITY
}

inline start_slow(t, d)
{
    if
    :: atomic { retired[t] -> touch(t); d = 0 }
    :: atomic { !retired[t] -> touch(t) };
        atomic { put_start(t, d); d = 0 };
        lower_cover(t)
    fi
}

/* Where nobody refuses it, and nobody is to be rung for. */
inline retire_in_callback(t)
{
    hold();
    atomic { take_start(t) };
    if
    :: atomic { posted[t] -> touch(t); retired[t] = true }
    :: atomic { !posted[t] -> touch(t); posted[t] = true; retired[t] = true };
        atomic { put_in_box(t) }
    fi;
    atomic {
        assert(!asleep && !closed);
        end_retire()
    }
}

inline receive(t)
{
#ifdef FAULT_POSTED_IS_CLEARED_LATE
    lower_cover(t);
#endif
    if
    :: atomic { !retired[t] -> in_box[t] = false; take_posted(t) }
#ifndef FAULT_POSTED_IS_CLEARED_LATE
        ;
        lower_cover(t)
#endif
    :: atomic { retired[t] ->
            in_box[t] = false;
            take_posted(t);
#ifndef FAULT_THE_PLAIN_TIMER_RUNS_ON
            cover[t] = INFINITY;
#endif
        };
        let_go(t, 0)
    fi
}

/* What takes a plain timer out of the lawn. */
inline uncover(t)
{
#ifdef FAULT_UNCOVER_STOPS_FIRST
    atomic { take_start(t) };
    atomic { raise_cover(t) }
#else
    atomic { raise_cover(t) };
    atomic { take_start(t) }
#endif
}
