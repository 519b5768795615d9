// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Runs, steps and choices (explorer.h).

#include "explorer.h"

#include "system.h"
#include "thread_locals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace explore
{

namespace
{

constexpr size_t memory_size = size_t{1} << 20;

} // namespace

Explorer &explorer()
{
    static Explorer the;
    return the;
}

Explorer::Explorer() : memory_(memory_size)
{
    for (unsigned i = 0; i < most_threads; ++i) {
        threads_.push_back(std::make_unique<Thread>());
    }
}

unsigned Explorer::add_thread(std::function<void()> run, End end)
{
    if (thread_count_ == most_threads) {
        fprintf(stderr, "more than %u threads\n", most_threads);
        abort();
    }
    Thread &thread = *threads_[thread_count_];
    thread.run = std::move(run);
    thread.end = end;
    thread.has_ended = false;
    thread.was_killed = false;
    thread.learned = 0;
    thread.what = "begins";
    thread.at = nullptr;
    thread.pc = nullptr;
    thread.ready = nullptr;
    thread.is_spinning = false;
    thread.rounds = 0;
    thread.naps = false;
    thread.polled.clear();
    thread.delayed = {};
    thread.locals = thread_locals().at_first;
    thread.fiber.prepare(entry);
    return thread_count_++;
}

Result Explorer::explore(Program *program, const Limits &limits)
{
    program_ = program;
    limits_ = limits;
    result_ = {};
    path_.clear();
    known_.clear();
    users_.clear();
    begins_anew_ = false;
    set_up();
    do {
        run_once();
        ++result_.runs;
        result_.longest = std::max(result_.longest, step_count_);
        result_.steps += step_count_;
        if (!result_.violation.empty()) {
            result_.steps_to_it = report();
            return result_;
        }
        if (begins_anew_) {
            begins_anew_ = false;
            path_.clear();
            known_.clear();
            result_.states = 0;
        } else if (!backtrack()) {
            result_.is_complete = true;
            return result_;
        }
    } while (result_.runs < limits_.most_runs);
    return result_;
}

void Explorer::set_up()
{
    thread_count_ = 0;
    current_ = nobody;
    memory_.clear();
    reset_system();
    program_->set_up();
    first_threads_.clear();
    for (unsigned i = 0; i < thread_count_; ++i) {
        first_threads_.push_back(threads_[i]->run);
    }
    memory_.save();
    save_system();
}

void Explorer::run_once()
{
    depth_ = 0;
    step_count_ = 0;
    preemptions_ = 0;
    old_ = 0;
    deaths_ = 0;
    is_done_ = false;
    gives_way_ = false;
    steps_.clear();
    thread_count_ = 0;
    current_ = nobody;
    memory_.reset();
    restore_system();
    for (const std::function<void()> &run : first_threads_) {
        add_thread(run);
    }
    program_->begin();
    memory_.begin_threads(thread_count_, limits_.most_back);
    // The first one begins, and picks who is to take the first step.
    current_ = 0;
    const ThreadLocals &locals = thread_locals();
    memcpy(locals.at, threads_[0]->locals.data(), locals.size);
    main_.switch_to(&threads_[0]->fiber);
    memcpy(locals.at, locals.at_first.data(), locals.size);
    current_ = nobody;
    if (is_done_ && result_.violation.empty()) {
        program_->end();
    }
}

// Nobody is left who must end.
bool Explorer::is_over() const
{
    return std::all_of(
        threads_.begin(),
        threads_.begin() + static_cast<ptrdiff_t>(thread_count_),
        [](const auto &i) { return i->has_ended || i->end == End::never; });
}

void Explorer::entry()
{
    Explorer &self = explorer();
    Thread &thread = *self.threads_[self.current_];
    self.arrive("begins", nullptr, nullptr);
    thread.run();
    self.store_delayed();
    thread.has_ended = true;
    thread.what = "has ended";
    self.pick_next();
    abort(); // nobody comes back to it
}

bool Explorer::backtrack()
{
    while (!path_.empty() && path_.back().taken + 1 == path_.back().count) {
        path_.pop_back();
    }
    if (path_.empty()) {
        return false;
    }
    ++path_.back().taken;
    return true;
}

unsigned Explorer::choose(unsigned count)
{
    if (count < 2) {
        return 0;
    }
    if (depth_ == path_.size()) {
        path_.push_back({static_cast<uint16_t>(count), 0});
    }
    if (path_[depth_].count != count) {
        fprintf(stderr, "a run differs from the one before\n");
        abort();
    }
    return path_[depth_++].taken;
}

// Of what a load may return, where 0 is the newest value.
unsigned Explorer::choose_value(unsigned count)
{
    if (count < 2 || old_ == limits_.most_old) {
        return 0;
    }
    if (depth_ == path_.size() && is_known(mix(hash(), count))) {
        leave_run();
    }
    const unsigned back = choose(count);
    old_ += back != 0;
    return back;
}

// Whether a run has been in this state before, and could go on as freely.
bool Explorer::is_known(uint64_t state)
{
    const auto [known, is_new] = known_.insert({state, preemptions_});
    if (is_new) {
        ++result_.states;
        return false;
    }
    const bool was_as_free = known->second <= preemptions_;
    known->second = std::min(known->second, preemptions_);
    return was_as_free;
}

void Explorer::leave_run()
{
    Thread &thread = *threads_[current_];
    thread.fiber.switch_to(&main_);
    abort();
}

void Explorer::refuse()
{
    leave_run();
}

void Explorer::violate(const std::string &what)
{
    if (result_.violation.empty()) {
        result_.violation = what;
    }
    if (current_ == nobody) {
        fprintf(stderr, "%s\n", what.c_str());
        abort();
    }
    leave_run();
}

void Explorer::assertion_failed(const char *what)
{
    if (is_running() && program_->is_misuse()) {
        refuse();
    }
    violate(what);
}

void Explorer::expect(bool holds, const char *what)
{
    if (holds) {
        return;
    }
    if (current_ == nobody) {
        result_.violation =
            result_.violation.empty() ? what : result_.violation;
    } else {
        violate(what);
    }
}

void Explorer::end_operation(uint64_t result)
{
    if (!is_running()) {
        return;
    }
    store_delayed();
    Thread &thread = *threads_[current_];
    thread.learned = mix(1, result);
    thread.polled.clear();
}

void Explorer::learned(uint64_t value)
{
    if (!is_running()) {
        return;
    }
    Thread &thread = *threads_[current_];
    thread.learned = mix(thread.learned, value);
}

// Whether more than one thread has accessed it in any run. What is of one
// thread alone is the same whenever others come in between. If that was said of
// it, and then another thread came, all begins anew.
bool Explorer::is_shared(const void *at)
{
    uint8_t &users = users_[at];
    const uint8_t before = users;
    users = static_cast<uint8_t>(users | 1U << current_);
    const bool was_shared = (before & (before - 1U)) != 0;
    const bool is_shared = (users & (users - 1U)) != 0;
    begins_anew_ |= is_shared && !was_shared;
    return is_shared;
}

uint64_t Explorer::hash()
{
    uint64_t hash = mix(memory_.hash(), program_->hash());
    for (unsigned i = 0; i < thread_count_; ++i) {
        const Thread &thread = *threads_[i];
        hash = mix(hash, thread.learned);
        hash = mix(hash, thread.was_killed    ? 4
                         : thread.has_ended   ? 1
                         : thread.is_spinning ? 2
                                              : 3);
        hash = mix(hash, thread.naps ? thread.nap_waits_for + 1 : 0);
        hash = mix(hash, reinterpret_cast<uintptr_t>(thread.pc));
        hash = mix(hash, reinterpret_cast<uintptr_t>(thread.what));
        hash = mix(hash, reinterpret_cast<uintptr_t>(thread.delayed.at));
        hash = mix(hash, thread.delayed.value);
    }
    return mix(hash, current_ + most_threads * old_);
}

void Explorer::note(const char *what, const void *at, uint64_t value,
                    const void *pc, unsigned back)
{
    steps_.push_back({current_, what, at, value, pc, back});
}

Limits usual_limits(unsigned threads)
{
    const bool is_full = getenv("LAWN_TEST_FULL") != nullptr;
    Limits limits;
    limits.most_runs = 100'000'000;
    if (threads > 2) {
        limits.most_preemptions = is_full ? 3 : 2;
        limits.most_old = is_full ? 2 : 1;
    } else if (!is_full) {
        limits.most_preemptions = 4;
        limits.most_old = 2;
    }
    return limits;
}

} // namespace explore
