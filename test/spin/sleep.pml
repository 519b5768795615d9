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
 * processor anywhere for any number of ticks, but for one at most between
 * reading the clock and setting the timerfd. With `stands` the engine's clock
 * is a virtual one, which only the program sets.
 *
 * Checked: what says BUSY and what returns has its reason, the timerfd is
 * running whenever a deadline is to be slept for, a sleeper is late by no more
 * than the clocks are apart and the time from reading the clock to setting the
 * timerfd, and what has happened wakes it no more than twice (the assertions);
 * what is ready is polled, what is due fires, and a wait that has a limit ends
 * (the formulas at the end, which a lost wake-up would break).
 *
 * Abstracted: the lawn is its next deadline, exact as lawn_settle() leaves it;
 * the epoll set is one source and the timerfd (pass.pml has who shares an fd;
 * channel.pml has what makes a completion channel readable); the kernel refuses
 * nothing; `stall_at` is arithmetic, which test/unit has.
 *
 * 100 thousand states, 150 with the largest formula.
 */

#define TTL 3  /* longest, in ticks */
#define STEP 2 /* longest_nsec: a TTL above it is slept for in two steps */
#define NEVER 255
#define APART 1 /* the clocks, at most */

/* The world. */
bool ready;        /* the source's fd is readable */
byte left = NEVER; /* until the timerfd runs out; 0: it is readable */
bool is_over;      /* no source becomes ready and no signal comes any more */
bit apart;         /* the kernel's clock is ahead */
bool stands;       /* the engine's clock */

/* The engine; times are what is left to them on its clock. */
byte due = NEVER; /* lawn_next() */
byte armed = NEVER;
byte limit = NEVER; /* of the wait */
bool now_moved;     /* the clock, since the program has read it */

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
    now_moved = now_moved || !stands;
    wakes = 0
}

inline tick_of_engine()
{
    count_down(due);
    count_down(armed);
    count_down(limit);
    now_moved = true
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

/* The assertions want to know how old the time is that is set. */
inline read_clock()
{
    now_due = due;
    now_armed = armed;
    now_limit = limit;
    now_moved = false;
    is_arming = true
}

/* What is not needed any more is 0, or it would count as another state. */
inline forget()
{
    now_due = 0;
    now_armed = 0;
    now_limit = 0;
    now_moved = false;
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

/* A timer is started, re-armed or stopped. */
inline set_due()
{
    if
    :: due = 1
    :: due = TTL
    :: due = NEVER
    fi
}

/* lawn_engine_progress(), with a budget for all. */
inline pass()
{
    now_due = due;
    atomic {
        work = ready;
        if
        :: ready -> ready = false; if :: set_due() :: skip fi
        :: else
        fi
    }
    atomic {
        if
        :: now_due == 0 && due == 0 -> work = true; set_due()
        :: else
        fi;
        now_due = 0
    }
}

/* look(): the lawn, then epoll_wait() without a timeout. `busy` is BUSY. */
inline look()
{
    busy = false;
    expired = false;
    if
#ifndef FAULT_DEADLINE_IS_NOT_LOOKED_AT
    :: now_due == 0 -> busy = true
#endif
#ifdef FAULT_ROOM_FOR_ONE_EVENT
    :: now_due != 0 && ready -> busy = true
    :: now_due != 0 && left == 0 -> expired = true
    :: now_due != 0 && !ready && left != 0
#else
    :: else -> busy = ready; expired = (left == 0)
#endif
    fi;
    assert(busy == (now_due == 0 || ready)) /* BUSY is that there is work */
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
        armed = (now_due <= now_limit -> due : limit)
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
    atomic { read_clock() };
    atomic {
        look();
        if
        :: busy -> forget(); goto progress
        :: else -> now_limit = NEVER; wake_at = now_due
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
        read_clock();
        waits = true
    };
    do
    :: atomic {
            look();
            wake_at = (now_due <= now_limit -> now_due : now_limit);
            has_limit = (wake_at != NEVER);
            if
            :: busy -> break
            :: else
            fi
        };
        atomic { set_timer() };
        atomic {
            block();
            by_timer = (now_due <= now_limit);
            has_moved = now_moved;
            read_clock();
            has_come = (by_timer -> now_due == 0 : now_limit == 0);
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
            :: else /* the rest */
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
    byte now_due, now_armed, now_limit; /* as read */
    byte wake_at;
    bool work, busy, expired, timed_out, is_interrupted;
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
