/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The first use of the clock: choose_once(), the_clock() and choose() of
 * src/clock/clock.cc, and lawn_get_time(), with two threads in a process, one
 * of which may fork at any time, and two in the child, whose memory is what the
 * parent's was then, without the thread that may have been choosing.
 *
 * Checked: one thread at a time chooses, in each process, and once (in the
 * child again, if the parent had not finished); nobody reads what is not yet
 * chosen; nobody waits for ever.
 *
 * Abstracted: memory is sequentially consistent, but for lawn_clock_is_counter,
 * which may be seen late, being relaxed; what is chosen is the same each time,
 * and it is the counter. A process has a number that none of its ancestors had
 * while it was choosing. A signal handler is not among the threads: it may not
 * be the first user while it interrupts another.
 *
 * 200 thousand states.
 */

#define unchosen 0
#define is_chosen 255
#define parent 1 /* also getpid() */
#define child 2

byte state[3] = unchosen;
bool is_counter[3];
byte written[3]; /* of `chosen`: 2 words */

byte choosers[3];
byte choices[3];

inline choose()
{
    choosers[self]++;
    assert(choosers[self] == 1);
    choices[self]++;
    assert(choices[self] == 1);
#ifdef FAULT_PUBLISHED_BEFORE_IT_IS_WRITTEN
    state[self] = is_chosen;
#endif
    written[self] = 1;
    written[self] = 2;
    is_counter[self] = true;
    choosers[self]--
}

inline choose_once()
{
    seen = state[self];
    do
    :: seen == is_chosen -> break
#ifdef FAULT_A_FORKED_CHOICE_IS_WAITED_FOR
    :: seen != is_chosen && seen != unchosen ->
#else
    :: seen == self ->
#endif
        state[self] != seen; /* nanosleep() */
        seen = state[self]
    :: else ->
#ifdef FAULT_ANYBODY_CHOOSES
        state[self] = self;
        choose();
        state[self] = is_chosen;
        break
#else
        atomic { /* compare and exchange */
            if
            :: state[self] == seen -> state[self] = self; has_won = true
            :: else -> seen = state[self]
            fi
        };
        if
        :: has_won ->
            has_won = false;
            choose();
            seen = is_chosen;
            state[self] = seen
        :: else
        fi
#endif
    od;
    seen = 0
}

/* lawn_get_time() */
inline read_clock()
{
    if
    :: is_counter[self]
    :: true -> /* not, or not yet seen */
        if
        :: state[self] == is_chosen
        :: else -> choose_once()
        fi;
        assert(state[self] == is_chosen && written[self] == 2)
    fi
}

proctype thread(byte self)
{
    byte seen;
    bool has_won;
    read_clock();
    read_clock()
}

/* Copies the memory, and goes on in both. */
proctype forking_thread(byte self)
{
    byte seen;
    bool has_won;
    if
    :: read_clock()
    :: true
    fi;
    atomic {
        state[child] = state[parent];
        is_counter[child] = is_counter[parent];
        written[child] = written[parent];
        run thread(child);
        run thread(child)
    };
    read_clock()
}

init
{
    atomic {
        run thread(parent);
        run forking_thread(parent)
    }
}
