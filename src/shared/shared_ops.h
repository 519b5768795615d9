// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared timers, step by step. The explorer (test/explore/) tries the ways in
// which the steps of several threads may interleave.
//
// What holds, for each timer that is not retired:
//   1. `cover` is the deadline of the owner's plain timer, or INFINITY if the
//      plain timer is idle. Only the owner changes it.
//   2. deadline >= cover, or the timer is POSTED, or a thread that has made the
//      deadline earlier is about to compare it with `cover`.
//   3. A timer is in the box at most once. The thread that sets POSTED puts it
//      there. The owner clears POSTED before it looks at the deadline.
//   4. A start ends in one of three ways. Another start or a stop takes its
//      deadline away by an exchange, or the owner does and then calls back.
//
// Two pairs of accesses must not pass each other. They are sequentially
// consistent, so that at least one side sees what the other has stored:
//   - A starter stores the deadline, then loads `cover`. The owner raises
//     `cover`, then loads the deadline.
//   - A starter pushes the timer, then loads the tag, and again the flags and
//     the deadline. The owner stores `wake_at`, then sets the tag if nothing
//     was pushed. The starter loads both again because another thread may have
//     made the deadline earlier or retired the timer, found it POSTED, and
//     looked at the tag too soon.

#ifndef LAWN_SRC_SHARED_SHARED_OPS_H
#define LAWN_SRC_SHARED_SHARED_OPS_H

#include "base/atomics.h"
#include "base/patience.h"
#include "base/ticks.h"
#include "shared/box.h"

namespace lawn
{

struct SharedOps {
    using Timer = lawn_shared_t;
    using Box = lawn_box_t;

    // Makes a box, whose memory is from the lawn's allocator.
    // `plain` is the callback by which the plain timers of shared ones are
    // known.
    static void open(Box *box, lawn_t *lawn, lawn_expired_fn_t plain,
                     void (*on_drain)(lawn_timer_t *))
    {
        *box = {};
        box->users = 1;
        box->lawn = lawn;
        box->allocator = allocator_of(lawn);
        box->ringing_in = forks;
        set_kind(lawn, kind_shared, {plain, false, on_drain, deadline_of});
    }

    // `plain` is called when the plain timer expires.
    static void init(Timer *timer, Box *box, lawn_expired_fn_t plain,
                     lawn_shared_fn_t expired)
    {
        *timer = {};
        lawn_timer_init(&timer->timer, plain);
        timer->deadline = LAWN_TIME_INFINITY;
        timer->cover = LAWN_TIME_INFINITY;
        timer->box = box;
        timer->expired = expired;
        hold(box);
    }

    // The plain timer is the first member of a shared timer.
    static Timer *of(lawn_timer_t *timer)
    {
        return reinterpret_cast<Timer *>(timer);
    }

    static lawn_time_t deadline_of(const lawn_timer_t *timer)
    {
        return Atomics::load(&reinterpret_cast<const Timer *>(timer)->deadline);
    }

    // The box's memory stays until each hold was dropped.
    static void hold(Box *box)
    {
        Atomics::add(&box->users, 1);
    }

    static void drop(Box *box)
    {
        if (Atomics::add(&box->users, ~uintptr_t{0}) == 1) {
            const lawn_allocator_t allocator = box->allocator;
            release(allocator, box);
        }
    }

    // In the child of a fork. Takes the parent's threads out of the count. It
    // does not change before, because each thread calls this before it counts
    // itself. The first one to change `ringing_in` takes them out.
    static void forget_parent(Box *box)
    {
        unsigned was = __atomic_load_n(&box->ringing_in, __ATOMIC_SEQ_CST);
        if (LAWN_LIKELY(was == forks)) {
            return;
        }
        const uintptr_t gone = Atomics::load(&box->ringing);
        if (__atomic_compare_exchange_n(&box->ringing_in, &was, forks, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            Atomics::add(&box->ringing, ~gone + 1);
        }
    }

    // Wakes the owner if it sleeps until later than `when`. The count is for
    // close(), which waits until no thread is in `wake` any more.
    static void ring(Box *box, lawn_time_t when)
    {
        if ((Atomics::load(&box->head) & asleep) == 0 ||
            when >= Atomics::load(&box->wake_at)) {
            return;
        }
        forget_parent(box);
        Atomics::add(&box->ringing, 1);
        if ((Atomics::clear(&box->head, asleep) & asleep) != 0 && box->wake) {
            box->wake(box->wake_arg);
        }
        Atomics::add(&box->ringing, ~uintptr_t{0});
    }

    // Returns false if the box is closed. After true, the timer belongs to the
    // owner.
    static bool push(Box *box, Timer *timer)
    {
        uintptr_t head = Atomics::load(&box->head);
        do {
            if ((head & closed) != 0) {
                return false;
            }
            timer->next = reinterpret_cast<Timer *>(head & ~tags);
        } while (!Atomics::swap(&box->head, &head,
                                reinterpret_cast<uintptr_t>(timer) |
                                    (head & asleep)));
        return true;
    }

    // For a retired timer that is in no list any more.
    static void let_go(Timer *timer, lawn_time_t now)
    {
        Box *const box = timer->box;
        if (timer->released) {
            timer->released(timer, now);
        }
        drop(box);
    }

    // For a message that a closed box refuses, or that was in the box when it
    // closed. Whoever clears POSTED of a retired timer lets go of it.
    static void take_back(Timer *timer)
    {
        Atomics::store(&timer->deadline, LAWN_TIME_INFINITY);
        if ((Atomics::clear(&timer->flags, posted) & retired) != 0) {
            let_go(timer, 0);
        }
    }

    static bool start(Timer *timer, lawn_time_t deadline)
    {
        deadline = earlier_of(deadline, never);
        if ((Atomics::load(&timer->flags) & retired) != 0) {
            return false;
        }
        Atomics::exchange(&timer->deadline, deadline);
        if (deadline >= Atomics::load(&timer->cover)) {
            return true;
        }
        Box *const box = timer->box;
        if ((Atomics::load(&box->head) & closed) != 0) {
            Atomics::store(&timer->deadline, LAWN_TIME_INFINITY);
            return false;
        }
        // A retire may have come meanwhile, and the owner may have taken the
        // timer out.
        const uintptr_t was = Atomics::set(&timer->flags, posted);
        if ((was & (posted | retired)) == 0 && !push(box, timer)) {
            take_back(timer);
            return false;
        }
        // A retire that found the timer POSTED has left the wake-up to this
        // thread, too.
        const bool is_retired = (Atomics::load(&timer->flags) & retired) != 0;
        ring(box,
             is_retired ? 0 : lawn_time_t{Atomics::load(&timer->deadline)});
        return true;
    }

    static bool stop(Timer *timer)
    {
        return Atomics::exchange(&timer->deadline, LAWN_TIME_INFINITY) !=
               LAWN_TIME_INFINITY;
    }

    // Only for the owner. Lowers the cover to the deadline.
    static void cover(Timer *timer)
    {
        const lawn_time_t deadline = Atomics::load(&timer->deadline);
        if (deadline < timer->cover) {
            lawn_t *const lawn = timer->box->lawn;
            hide(lawn, timer->cover == LAWN_TIME_INFINITY);
            lawn_timer_start_at(lawn, &timer->timer, lawn->now, deadline);
            Atomics::put(&timer->cover, deadline);
        }
    }

    static bool start_local(Timer *timer, lawn_time_t deadline)
    {
        const bool is_dead = (Atomics::load(&timer->flags) & retired) != 0 ||
                             (Atomics::load(&timer->box->head) & closed) != 0;
        if (!is_dead) {
            Atomics::store(&timer->deadline, earlier_of(deadline, never));
            cover(timer);
        }
        return !is_dead;
    }

    // The plain timer has expired. If there is no callback, it was only moved.
    static void expire(Timer *timer, lawn_time_t now)
    {
        Box *const box = timer->box;
        unhide(box->lawn);
        ++box->busy;
        if (!call_back(timer, now)) {
            note_unfired(box->lawn);
        }
        --box->busy;
    }

    static bool call_back(Timer *timer, lawn_time_t now)
    {
        Box *const box = timer->box;
        Atomics::store(&timer->cover, LAWN_TIME_INFINITY);
        // Before the deadline is taken away, so that who finds it gone finds
        // `running` set, or finds that the callback is over.
        __atomic_store_n(&box->running_in, forks, __ATOMIC_RELAXED);
        Atomics::put(&box->runs, box->runs + 1);
        Atomics::put(&box->running, timer);
        lawn_time_t deadline = Atomics::load(&timer->deadline);
        bool is_taken = false;
        while (!is_taken && deadline <= now) {
            is_taken =
                Atomics::swap(&timer->deadline, &deadline, LAWN_TIME_INFINITY);
        }
        // A start may have come between the two steps of a retire.
        const bool is_due =
            is_taken && (Atomics::load(&timer->flags) & retired) == 0;
        if (is_due) {
            note_late(box->lawn, now - deadline);
            if (timer->expired) {
                timer->expired(timer, now);
            }
        }
        Atomics::put(&box->running, static_cast<Timer *>(nullptr));
        if (!is_taken) {
            cover(timer);
        }
        return is_due;
    }

    // The plain timer was taken out of the lawn.
    static void uncover(Timer *timer)
    {
        unhide(timer->box->lawn);
        Atomics::store(&timer->cover, LAWN_TIME_INFINITY);
        stop(timer);
    }

    // A message has come out of the box.
    static void receive(Timer *timer, lawn_time_t now)
    {
        if ((Atomics::clear(&timer->flags, posted) & retired) == 0) {
            cover(timer);
            return;
        }
        lawn_t *const lawn = timer->box->lawn;
        unhide(lawn, lawn_timer_stop(lawn, &timer->timer));
        let_go(timer, now);
    }

    static Timer *take(Box *box, uintptr_t then)
    {
        const uintptr_t head = Atomics::exchange(&box->head, then);
        return reinterpret_cast<Timer *>(head & ~tags);
    }

    static unsigned drain(Box *box, lawn_time_t now, unsigned budget)
    {
        ++box->busy;
        lawn_see(box->lawn, now);
        const unsigned count = work_off(box, box->lawn->now, budget);
        --box->busy;
        return count;
    }

    static unsigned work_off(Box *box, lawn_time_t now, unsigned budget)
    {
        unsigned count = 0;
        // First what was left over, then what is in the box now, but not what
        // comes meanwhile.
        for (bool is_taken = false;;) {
            if (Timer *const timer = box->taken) {
                if (budget != 0 && count == budget) {
                    return count;
                }
                box->taken = timer->next;
                receive(timer, now);
                ++count;
            } else if (is_taken) {
                return count;
            } else {
                is_taken = true;
                box->taken = take(box, 0);
            }
        }
    }

    static bool sleep(Box *box, lawn_time_t until)
    {
        if (box->taken) {
            return false;
        }
        Atomics::store(&box->wake_at, until);
        uintptr_t head = 0;
        return Atomics::swap(&box->head, &head, asleep) || head == asleep;
    }

    // Waits for the callback of this timer that is running, but for no later
    // one, nor for one that has begun in the parent before a fork.
    static void sync(const Timer *timer)
    {
        const Box *const box = timer->box;
        const uintptr_t run = Atomics::load(&box->runs);
        Patience patience;
        while (Atomics::load(&box->running) == timer &&
               Atomics::load(&box->runs) == run &&
               __atomic_load_n(&box->running_in, __ATOMIC_RELAXED) == forks) {
            patience.wait();
        }
    }

    static void retire(Timer *timer, lawn_shared_fn_t released)
    {
        Box *const box = timer->box;
        hold(box); // the owner may drop the timer's own hold
        timer->released = released;
        stop(timer);
        const uintptr_t was = Atomics::set(&timer->flags, posted | retired);
        if ((was & posted) == 0 && !push(box, timer)) {
            take_back(timer);
        }
        ring(box, 0);
        drop(box);
    }

    static void destroy(Box *box, lawn_expired_fn_t plain)
    {
        const auto uncover_own = [](lawn_timer_t *timer, void *arg) {
            if (of(timer)->box == arg) {
                lawn_timer_stop(of(timer)->box->lawn, timer);
                uncover(of(timer));
            }
        };
        for_each_of_kind(box->lawn, plain, uncover_own, box);
        close(box);
        drop(box);
    }

    // From then on nothing comes in, and nobody wakes the owner. Timers in the
    // box are stopped. The owner has uncovered all timers before.
    static void close(Box *box)
    {
        Timer *messages[] = {box->taken, take(box, closed)};
        box->taken = nullptr;
        for (Timer *&next : messages) {
            while (Timer *const timer = next) {
                next = timer->next;
                take_back(timer);
            }
        }
        forget_parent(box);
        Patience patience;
        while (Atomics::load(&box->ringing) != 0) {
            patience.wait();
        }
    }
};

} // namespace lawn

#endif
