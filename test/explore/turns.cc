// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which explored thread takes the next step, and which cannot: one that spins,
// naps, waits or was killed (explorer.h).

#include "explorer.h"

#include "thread_locals.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>

namespace explore
{

bool Explorer::has_news(const Thread &thread) const
{
    Memory &memory = const_cast<Memory &>(memory_);
    return std::any_of(
        thread.polled.begin(), thread.polled.end(),
        [&](const Polled &i) { return memory.newest(i.location) > i.age; });
}

bool Explorer::is_ready(const Thread &thread) const
{
    return !thread.has_ended && (!thread.is_spinning || has_news(thread)) &&
           (!thread.ready || thread.ready()) &&
           (!thread.naps || has_napped(thread));
}

bool Explorer::has_napped(const Thread &thread) const
{
    for (unsigned i = 0; i < thread_count_; ++i) {
        if ((thread.nap_waits_for >> i & 1) != 0 && !threads_[i]->naps &&
            is_ready(*threads_[i])) {
            return false;
        }
    }
    return true;
}

// What looks like a loop may be two loads of the same.
bool Explorer::let_spinner_go_on()
{
    constexpr unsigned most_rounds = 4;
    for (unsigned i = 0; i < thread_count_; ++i) {
        Thread &thread = *threads_[i];
        if (!thread.has_ended && thread.is_spinning &&
            thread.rounds < most_rounds) {
            ++thread.rounds;
            thread.is_spinning = false;
            return true;
        }
    }
    return false;
}

// On the fiber of the thread that runs, which may be the one that goes on.
void Explorer::pick_next()
{
    std::array<unsigned, most_threads> ready = {};
    unsigned count = 0;
    do {
        for (unsigned i = 0; i < thread_count_; ++i) {
            const unsigned k = (current_ + i) % thread_count_;
            if (is_ready(*threads_[k])) {
                ready[count++] = k;
            }
        }
    } while (count == 0 && (let_spinner_go_on() || (idle_ && idle_())));
    if (count == 0) {
        is_done_ = is_over();
        if (!is_done_) {
            violate(describe_hang());
        }
        leave_run();
    }
    const bool could_go_on = ready[0] == current_ && !gives_way_;
    gives_way_ = false;
    if (could_go_on && preemptions_ == limits_.most_preemptions) {
        count = 1;
    }
    if (count > 1 && depth_ == path_.size() && is_known(hash())) {
        leave_run();
    }
    const unsigned next = ready[choose(count)];
    preemptions_ += could_go_on && next != current_;
    if (next != current_) {
        Thread &before = *threads_[current_];
        const ThreadLocals &locals = thread_locals();
        before.locals.assign(locals.at, locals.at + locals.size);
        current_ = next;
        memcpy(locals.at, threads_[next]->locals.data(), locals.size);
        before.fiber.switch_to(&threads_[next]->fiber);
    }
}

void Explorer::arrive(const char *what, const void *at, const void *pc)
{
    Thread &thread = *threads_[current_];
    thread.what = what;
    thread.at = at;
    thread.pc = pc;
    if (++step_count_ > limits_.most_steps) {
        violate("a run of more steps than allowed");
    }
    const bool is_step = at == nullptr || is_shared(at);
    if (is_step) {
        pick_next();
    }
    thread.ready = nullptr;
    thread.is_spinning = false;
    thread.naps = false;
    if (is_step) {
        for (unsigned i = 0; i < thread_count_; ++i) {
            threads_[i]->nap_waits_for &= ~(1U << current_);
        }
        choose_death();
    }
}

// The thread is killed before the step that it is about to take.
void Explorer::choose_death()
{
    Thread &thread = *threads_[current_];
    if (thread.end != End::killed || deaths_ == limits_.most_deaths ||
        choose(2) == 0) {
        return;
    }
    ++deaths_;
    thread.has_ended = true;
    thread.was_killed = true;
    thread.what = "was killed";
    note("killed", nullptr, 0, nullptr, 0);
    if (on_death_) {
        on_death_(current_);
    }
    pick_next();
    abort(); // nobody comes back to it
}

void Explorer::pause()
{
    if (!is_running()) {
        return;
    }
    store_delayed();
    Thread &thread = *threads_[current_];
    gives_way_ = true;
    if (thread.polled.empty()) {
        arrive("yields", nullptr, nullptr);
        return;
    }
    thread.is_spinning = true;
    arrive("spins", nullptr, nullptr);
    // In the end it sees what there is.
    for (const Polled &i : thread.polled) {
        memory_.view_of(current_).raise(i.location, memory_.newest(i.location));
    }
    thread.polled.clear();
}

void Explorer::nap()
{
    if (!is_running()) {
        return;
    }
    store_delayed();
    Thread &thread = *threads_[current_];
    thread.naps = true;
    thread.nap_waits_for = ((1U << thread_count_) - 1) & ~(1U << current_);
    gives_way_ = true;
    arrive("naps", nullptr, nullptr);
}

void Explorer::wait(const char *what, std::function<bool()> is_ready)
{
    store_delayed();
    threads_[current_]->ready = std::move(is_ready);
    gives_way_ = true;
    arrive(what, nullptr, nullptr);
    note(what, nullptr, 0, nullptr, 0);
}

void Explorer::step(const char *what, bool changes)
{
    if (!is_running()) {
        return;
    }
    store_due();
    arrive(what, nullptr, nullptr);
    note(what, nullptr, 0, nullptr, 0);
    threads_[current_]->delayed.is_due |= changes;
}

} // namespace explore
