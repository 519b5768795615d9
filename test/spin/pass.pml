/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The pass and its list of sources: src/engine/engine.cc, with watch() and
 * unwatch() of sleep.cc, under a program that adds and removes any sources at
 * any time: in polls, in timers' callbacks, between passes. A few sources, two
 * passes, some of them stalls, and every program of up to four such calls. The
 * allocator gives out again at once what was freed.
 *
 * Beside the list is the sequence that it should be (`sources`), and the
 * assertions compare them: the list is whole after each call; a poll finds the
 * source that is the next in the sequence, was there when the pass began and
 * was not removed since; whoever stays is polled once, in a stall twice; no
 * memory is touched that was freed, and none is left at the end; the fd that
 * some of the sources share is watched as long as one of them is there.
 *
 * Abstracted: the timers are a callback that may come or not;
 * epoll and malloc() refuse nothing.
 *
 * 260 thousand states; 640 with -DCALLS=5.
 */

#define SLOTS 4 /* of memory, one for each source */
#ifndef CALLS
#define CALLS 4
#endif
#define PASSES 2
#define NONE 0 /* a null pointer */

/* lawn_source: of each slot. */
typedef source_t {
    byte next;
    byte prev;
    bit poll; /* 0: removed */
    bit fd;   /* it has one, the one that is shared */
    bit held; /* allocated */

    /* For the assertions, within a pass. */
    bit was_there;
    byte polls
};
source_t at[SLOTS + 1];

/* lawn_engine */
byte first, last;
bool in_pass, has_removed;
bool watches; /* the epoll set has the fd */

byte sources[SLOTS + 1]; /* in the order of adding */
byte count;
byte calls = CALLS;

#define touch(slot) assert(at[slot].held) /* not freed, nor NULL */

inline check_list()
{
    d_step {
        i = first;
        j = NONE;
        k = 0;
        n = 0;
        fd = false;
        do
        :: i == NONE -> break
        :: else ->
            touch(i);
            assert(at[i].prev == j);
            if
            :: at[i].poll ->
                assert(k < count && sources[k] == i);
                fd = fd || at[i].fd;
                k++
            :: else -> assert(in_pass && has_removed)
            fi;
            n++;
            assert(n <= SLOTS);
            j = i;
            i = at[i].next
        od;
        assert(k == count && last == j);
        assert(watches == fd);
        i = 0;
        j = 0;
        k = 0;
        n = 0;
        fd = false
    }
}

/* `who` of the sequence leaves it. */
inline forget(who)
{
    i = 0;
    do
    :: sources[i] != who -> i++
    :: else -> break
    od;
    count--;
    do
    :: i < count -> sources[i] = sources[i + 1]; i++
    :: else -> break
    od;
    sources[count] = NONE;
    at[who].was_there = false;
    at[who].polls = 0;
    i = 0
}

inline free_source(who)
{
    touch(who);
    if
    :: at[who].prev != NONE -> at[at[who].prev].next = at[who].next
    :: else -> first = at[who].next
    fi;
    if
    :: at[who].next != NONE -> at[at[who].next].prev = at[who].prev
    :: else -> last = at[who].prev
    fi;
    at[who].held = false;
    at[who].next = NONE;
    at[who].prev = NONE;
    at[who].poll = false;
    at[who].fd = false
}

/* lawn_engine_add() */
inline add(who, has_fd)
{
    d_step {
        at[who].held = true;
        at[who].fd = has_fd;
        watches = watches || has_fd; /* or EEXIST */
        at[who].next = NONE;
        at[who].prev = last;
        at[who].poll = true;
        if
        :: last != NONE -> touch(last); at[last].next = who
        :: else -> first = who
        fi;
        last = who;
        sources[count] = who;
        count++
    };
    check_list()
}

/* lawn_engine_remove() */
inline remove(who)
{
    d_step {
        touch(who);
        at[who].poll = false;
        if
        :: at[who].fd -> /* unwatch() */
            i = first;
            do
            :: i == NONE -> watches = false; break
#ifdef FAULT_A_SHARED_FD_IS_FORGOTTEN
            :: else -> watches = false; break
#else
#ifdef FAULT_A_REMOVED_SOURCE_IS_WATCHED
            :: i != NONE && i != who && at[i].fd -> break
#else
            :: i != NONE && at[i].poll && at[i].fd -> break
#endif
            :: else -> i = at[i].next
#endif
            od;
            i = 0
        :: else
        fi;
        forget(who);
        if
#ifndef FAULT_FREED_IN_THE_PASS
        :: in_pass -> has_removed = true
#endif
        :: else -> free_source(who)
        fi
    };
    check_list()
}

/* What a program does when it is called, or between passes. */
inline act()
{
    do
    :: atomic { calls > 0 && count > 0 ->
            calls--;
            select(which : 0 .. count - 1);
            victim = sources[which];
            which = 0;
            remove(victim);
            victim = 0
        }
    :: atomic { calls > 0 ->
            calls--;
            if
            :: !at[1].held -> which = 1
            :: !at[2].held -> which = 2
            :: !at[3].held -> which = 3
            :: !at[4].held -> which = 4
            :: else /* NO_MEMORY */
            fi;
            if
            :: which != NONE -> add(which, true)
            :: which != NONE -> add(which, false)
            :: else
            fi;
            which = NONE
        }
    :: break
    od
}

/* The poll of a source, for the `round`th time in this pass. */
inline check_poll(who)
{
    d_step {
        assert(at[who].poll); /* a call to NULL */
        assert(at[who].was_there);
        i = 0;
        do
        :: sources[i] != who ->
            assert(at[sources[i]].polls == round);
            i++
        :: else -> break
        od;
        do
        :: i < count && at[sources[i]].was_there ->
            assert(at[sources[i]].polls == round - 1);
            i++
        :: else -> break
        od;
        i = 0;
        at[who].polls++
    }
}

inline poll_sources()
{
    source = first;
    do
    :: touch(source);
#ifndef FAULT_REMOVED_SOURCES_ARE_POLLED
        if
        :: at[source].poll ->
#endif
            check_poll(source);
            act()
#ifndef FAULT_REMOVED_SOURCES_ARE_POLLED
        :: else
        fi
#endif
        ;
        touch(source);
#ifdef FAULT_POLLED_TO_THE_END
        if
        :: at[source].next == NONE -> break
#else
        if
        :: source == final -> break
#endif
        :: else -> source = at[source].next
        fi
    od;
    source = NONE
}

inline free_removed()
{
    d_step {
        has_removed = false;
        j = first;
        do
        :: j == NONE -> break
        :: else ->
            touch(j);
            k = at[j].next;
            if
            :: !at[j].poll -> free_source(j)
            :: else
            fi;
#ifdef FAULT_THE_FREED_IS_ASKED_FOR_THE_NEXT
            touch(j);
#endif
            j = k
        od;
        j = 0;
        k = 0
    }
}

inline begin()
{
    d_step {
        i = 0;
        do
        :: i < count -> at[sources[i]].was_there = true; i++
        :: else -> break
        od;
        i = 0;
        in_pass = true;
        final = last
    }
}

inline end()
{
    d_step {
        in_pass = false;
        i = 0;
        do
        :: i < count ->
            assert(!at[sources[i]].was_there ||
                   at[sources[i]].polls == round);
            at[sources[i]].was_there = false;
            at[sources[i]].polls = 0;
            i++
        :: else -> break
        od;
        i = 0;
        round = 0;
        final = NONE
    };
    if
    :: has_removed -> free_removed()
    :: else
    fi;
    check_list()
}

inline destroy()
{
    d_step {
        i = first;
        do
        :: i == NONE -> break
        :: else -> j = at[i].next; at[i].held = false; i = j
        od;
        i = 1;
        do
        :: i <= SLOTS -> assert(!at[i].held); i++ /* a leak */
        :: else -> break
        od
    }
}

/* lawn_engine_progress() */
active proctype program()
{
    byte i, j, k, n;
    bit fd;
    byte which, victim, source, final;
    byte round, passes;
    add(1, true);
    do
    :: count < SLOTS - 1 -> add(count + 1, true)
    :: count < SLOTS - 1 -> add(count + 1, false)
    :: break
    od;
    do
    :: passes < PASSES ->
        passes++;
        begin();
        round = 1;
        if
        :: final != NONE ->
            poll_sources();
            if
            :: round = 2; poll_sources() /* a stall */
            :: skip
            fi
        :: else
        fi;
        act(); /* from timers */
        end();
        act()
    :: else -> break
    od;
    destroy()
}
