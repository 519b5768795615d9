/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Going to sleep and waking up: src/engine/sleep.cc, under a program that goes
 * round as lawn/engine.h says,
 *
 *     a pass, until one finds nothing -> lawn_engine_arm() and its own poll(),
 *                                        or lawn_engine_wait()
 *
 * against a kernel and a world that may do something between any two steps of
 * it: make the source's fd readable, let time go by, interrupt what blocks.
 *
 * Time goes on for ever in a finite model, as each time is kept as the ticks
 * that are left to it. There are two clocks, the kernel's, by which the timerfd
 * runs, and the engine's, which may go a tick apart. The program may lose the
 * processor anywhere for any number of ticks, and settling takes as many, but
 * there is one at most between reading the clock and setting the timerfd. With
 * `stands` the engine's clock is a virtual one, which only the program sets.
 *
 * Checked: what says BUSY and what returns has its reason, the timerfd is
 * running whenever a deadline is to be slept for, a sleeper is late by no more
 * than the clocks are apart and the time from reading the clock to setting the
 * timerfd, and what has happened wakes it no more than twice (the assertions);
 * what is ready is polled, what is due fires, and a wait that has a limit ends
 * (the formulas at the end, which a lost wake-up would break).
 *
 * Abstracted: the lawn is its earliest deadline and lawn_next(), which is that
 * or earlier, and which a pass or lawn_settle() makes later, or does not; of a
 * budget, that a pass may leave to the next what it should move; the epoll set
 * is one source and the timerfd; the kernel refuses nothing. Who shares an fd,
 * and `stall_at`, which is arithmetic, are test/unit's.
 *
 * 250 to 400 thousand states with each formula.
 */

#define TTL 3  /* longest, in ticks */
#define STEP 2 /* longest_nsec: a TTL above it is slept for in two steps */
#define NEVER 255
#define APART 1 /* the clocks, at most */

#define least(a, b) ((a) < (b) -> (a) : (b))

/* The world. */
bool ready;        /* the source's fd is readable */
byte left = NEVER; /* until the timerfd runs out; 0: it is readable */
bool is_over;      /* no source becomes ready and no signal comes any more */
bit apart;         /* the kernel's clock is ahead */
bool stands;       /* the engine's clock */

/* The engine; times are what is left to them on its clock. */
byte due = NEVER;  /* the earliest deadline */
byte next = NEVER; /* lawn_next() */
byte armed = NEVER;
byte limit = NEVER; /* of the wait */

/* For the assertions. */
bool blocks, waits, has_limit;
bit since_read; /* ticks of the kernel, until the timerfd is set */
bit set_late;   /* the same, when it was set */
bool is_arming; /* the clock was read, the timerfd not yet set */
byte overslept; /* ticks, with a timer that is due */
byte wakes;     /* since something has happened */

inline count_down(what)
{
    if
    :: what > 0 && what != NEVER -> what--
    :: else
    fi
}

inline tick_of_kernel()
{
    if
    :: blocks && left != 0 && !ready && due == 0 && !stands ->
        overslept++;
        assert(overslept <= set_late + APART) /* it sleeps on */
    :: else
    fi;
    count_down(left);
    since_read = is_arming;
    wakes = 0
}

inline tick_of_engine()
{
    count_down(due);
    count_down(next);
    count_down(armed);
    count_down(limit)
}

#define may_tick (!is_arming || since_read == 0)

active proctype clocks()
{
    do
    :: atomic {
            may_tick ->
            tick_of_kernel();
            if
            :: !stands -> tick_of_engine()
            :: else
            fi
        }
    :: atomic { !stands && may_tick && !apart -> apart = 1; tick_of_kernel() }
    :: atomic { apart -> apart = 0; tick_of_engine() }
    od
}

/* May come to an end, so that nobody is woken by what comes next. */
active proctype world()
{
    do
    :: atomic { !ready -> ready = true; wakes = 0 }
    :: is_over = true; break
    od
}

inline read_times()
{
    now_due = due;
    now_next = next;
    now_armed = armed;
    now_limit = limit
}

/* What is not needed any more is 0, or it would count as another state. */
inline forget()
{
    now_due = 0;
    now_next = 0;
    now_armed = 0;
    now_limit = 0;
    is_arming = false;
    since_read = 0;
    wake_at = 0;
    busy = false;
    expired = false;
    timed_out = false;
    is_interrupted = false;
    by_timer = false;
    has_moved = false;
    has_come = false
}

/* A timer is started, re-armed or stopped. A start makes lawn_next() earlier,
 * by the begin of a slot. */
inline set_due()
{
    if
    :: due = 1
    :: due = TTL; if :: next = least(next, 1) :: skip fi
    :: due = NEVER
    fi;
    next = least(next, due)
}

/* What is not due is moved, or was stopped: an empty slot. */
inline advance()
{
    if
    :: now_due == 0 && due == 0 ->
        work = true;
        next = NEVER;
        set_due()
    :: else ->
        next = due;
        if
        :: due != 0 && due != 1 -> next = 1
        :: skip
        fi;
        if
        :: work = true
        :: skip
        fi
    fi
}

/* lawn_engine_progress() */
inline pass()
{
    atomic {
        now_due = due;
        now_next = next
    }
    atomic {
        work = ready;
        if
        :: ready -> ready = false; if :: set_due() :: skip fi
        :: else
        fi
    }
    atomic {
        if
        :: now_next == 0 -> is_cut = false; advance()
        :: now_next == 0 && !is_cut -> /* all that is moved is left to do */
            is_cut = true;
#ifndef FAULT_WHAT_MOVES_IS_NO_WORK
            work = true
#endif
        :: else
        fi;
        assert(work || !is_cut); /* 0: nothing is left */
        now_due = 0;
        now_next = 0
    }
}

/* look(): epoll_wait() without a timeout. `busy` is BUSY. */
inline look()
{
    busy = false;
    expired = false;
    if
#ifdef FAULT_ROOM_FOR_ONE_EVENT
    :: ready -> busy = true
    :: left == 0 -> expired = true
    :: !ready && left != 0
#else
    :: true -> busy = ready; expired = (left == 0)
#endif
    fi;
    assert(busy == ready)
}

/* prepare(), which takes any time. */
inline settle_and_look()
{
#ifdef FAULT_THE_CLOCK_IS_READ_BEFORE_SETTLING
    atomic { read_times() };
#endif
    atomic {
        if
        :: next = due; now_next = now_due /* as seen from the reading */
        :: skip                           /* too many timers, or it is due */
        fi;
        look()
    }
}

/* The end of it. */
inline read_clock()
{
#ifndef FAULT_THE_CLOCK_IS_READ_BEFORE_SETTLING
    read_times();
#endif
    is_arming = true;
#ifndef FAULT_DEADLINE_IS_NOT_LOOKED_AT
    busy = busy || now_next == 0;
#endif
    wake_at = least(now_next, now_limit)
}

/* set_timer(), the times being those since the clock was read. */
inline set_timer()
{
    assert(wake_at > 0); /* it sleeps for what is due */
    if
#ifdef FAULT_RUN_OUT_IS_NOT_SET_AGAIN
    :: wake_at != now_armed ->
#else
#ifdef FAULT_A_NEW_DEADLINE_IS_NOT_SET
    :: armed == NEVER || expired ->
#else
    :: wake_at != now_armed || expired ->
#endif
#endif
        if
#ifdef FAULT_NEVER_IS_NOT_SET
        :: wake_at == NEVER
#else
        :: wake_at == NEVER -> left = NEVER
#endif
        :: wake_at != NEVER -> left = (wake_at < STEP -> wake_at : STEP)
        fi;
        set_late = since_read;
        armed = (now_next <= now_limit -> next : limit)
    :: else
    fi;
    assert(left != NEVER || wake_at == NEVER); /* nothing would wake it */
    is_arming = false;
    since_read = 0;
    blocks = true
}

/* block(), or the program's own poll(). `timed_out` is TIMED_OUT. */
inline block()
{
    if
#ifndef FAULT_SOURCES_WAKE_NOBODY
    :: ready -> timed_out = false; wakes++
#endif
#ifndef FAULT_THE_TIMERFD_WAKES_NOBODY
    :: !ready && left == 0 -> timed_out = true; wakes++
#endif
    :: !is_over -> timed_out = false; is_interrupted = true
    fi;
    assert(wakes <= 2); /* it spins */
    blocks = false;
    overslept = 0
}

inline arm_and_poll()
{
    settle_and_look();
    atomic {
        read_clock();
        if
        :: busy -> forget(); goto progress
        :: else
        fi
    };
    atomic { set_timer() };
    atomic { block(); forget() }
}

/* lawn_engine_wait(): */
inline wait()
{
    atomic {
        if
        :: limit = 1
        :: limit = NEVER
        fi;
        waits = true
    };
    do
    :: settle_and_look();
        atomic {
            read_clock();
            has_limit = (least(due, limit) != NEVER);
            if
            :: busy -> break
            :: else
            fi
        };
        atomic {
            if
            :: wake_at != 0 -> set_timer()
            :: else -> timed_out = true; is_arming = false; since_read = 0
            fi
        };
        atomic {
            if
            :: blocks -> block()
            :: else
            fi;
            by_timer = (now_next <= now_limit);
            has_moved = !stands; /* if only by less than a tick */
            read_times();
            has_come = (by_timer -> now_next == 0 : now_limit == 0);
            if
            :: !timed_out ->
                assert(ready || is_interrupted); /* nobody has called */
                break
#ifdef FAULT_ANY_TIMER_IS_A_DEADLINE
            :: timed_out ->
#else
#ifdef FAULT_A_CLOCK_ALWAYS_MOVES
            :: timed_out && has_come ->
#else
            :: timed_out && (has_come || !has_moved) ->
#endif
#endif
                assert(has_come || stands); /* early */
                break
            :: else -> forget() /* the rest */
            fi
        }
    od;
    atomic {
        forget();
        waits = false;
        has_limit = false;
        limit = NEVER
    }
}

active proctype program()
{
    byte now_due, now_next, now_armed, now_limit; /* as read */
    byte wake_at;
    bool work, is_cut, busy, expired, timed_out, is_interrupted;
    bool by_timer, has_moved, has_come;
    atomic {
        if
        :: stands = true
        :: skip
        fi;
        set_due()
    };
progress:
    do
    :: pass();
        if
        :: work
        :: stands -> atomic { tick_of_engine() } /* virtual time is set */
        :: !work -> arm_and_poll()
        :: !work -> wait()
        fi
    od
}

ltl polled { [] (ready -> <> !ready) }
ltl fires { [] (due == 0 && !stands -> <> (due != 0)) }
ltl returns { [] (waits && has_limit -> <> !waits) }
