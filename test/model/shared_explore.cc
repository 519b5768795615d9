// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "shared_explore.h"

#include <string.h>

namespace shared_explore
{

namespace
{

constexpr unsigned most_steps = 2'000;
constexpr const char *kind_names[] = {"load", "put", "store", "exchange",
                                      "swap", "add", "set",   "clear"};

// Whose thread starts on a fiber.
Explorer *current;

void write(void *at, unsigned size, uint64_t value)
{
    const auto half = static_cast<uint32_t>(value);
    if (size == sizeof(half)) {
        memcpy(at, &half, sizeof(half));
    } else {
        memcpy(at, &value, sizeof(value));
    }
}

uint64_t next_value(const Access &access, uint64_t was)
{
    switch (access.kind) {
    case Kind::add:
        return was + access.value;
    case Kind::set:
        return was | access.value;
    case Kind::clear:
        return was & ~access.value;
    default:
        return access.value;
    }
}

} // namespace

uint64_t Explorer::read(const void *at, unsigned size) const
{
    uint32_t half;
    uint64_t value;
    if (size == sizeof(half)) {
        memcpy(&half, at, sizeof(half));
        return half;
    }
    memcpy(&value, at, sizeof(value));
    return value;
}

Result Explorer::explore(uint64_t most_runs, bool merges)
{
    merges_ = merges;
    result_ = {};
    nodes_.clear();
    known_.clear();
    double schedules = 0;
    do {
        run();
        ++result_.runs;
        result_.longest = steps_ > result_.longest ? steps_ : result_.longest;
        result_.refused += verdict_ == Verdict::refused;
        if (verdict_ == Verdict::failed) {
            result_.violations.emplace_back(failure_);
            is_telling_ = true; // the same again, told step by step
            run();
            is_telling_ = false;
            if (verdict_ != Verdict::failed) {
                result_.steps.emplace_back("not so when repeated");
            }
            return result_;
        }
        schedules = verdict_ == Verdict::complete ? 1
                    : verdict_ == Verdict::known  ? known_[known_hash_]
                                                  : 0;
        result_.is_complete = !go_back(schedules);
    } while (!result_.is_complete && result_.runs < most_runs);
    return result_;
}

// To the last decision that was not tried in all ways. False when there is
// none.
bool Explorer::go_back(double schedules)
{
    while (!nodes_.empty()) {
        Node &node = nodes_.back();
        node.schedules += schedules;
        if (++node.choice < node.count) {
            return true;
        }
        schedules = node.schedules;
        if (merges_) {
            known_[node.hash] = schedules;
        }
        nodes_.pop_back();
    }
    result_.schedules = schedules;
    return false;
}

void Explorer::enter()
{
    Explorer *const explorer = current;
    const unsigned thread = explorer->running_;
    explorer->fibers_[thread].arrived();
    explorer->program_->run(thread);
    explorer->see_memory(&explorer->threads_[thread]);
    explorer->threads_[thread].has_ended = true;
    if (explorer->threads_[thread].is_new) {
        explorer->leave(Verdict::none);
    }
    explorer->schedule();
}

void Explorer::run()
{
    current = this;
    running_ = nobody;
    verdict_ = Verdict::none;
    steps_ = 0;
    depth_ = 0;
    thread_count_ = program_->begin();
    for (unsigned i = 0; i < thread_count_; ++i) {
        Thread &thread = threads_[i];
        thread.is_new = true;
        thread.has_ended = false;
        thread.may_spin = false;
        thread.is_spinning = false;
        thread.is_waiting = false;
        thread.history = 0;
        thread.puts.clear();
        thread.loads.clear();
        fibers_[i].prepare(enter);
    }
    // Each up to its first access.
    for (unsigned i = 0; i < thread_count_; ++i) {
        running_ = i;
        main_.switch_to(&fibers_[i]);
    }
    running_ = nobody;
    schedule();
    running_ = nobody;
    if (verdict_ == Verdict::complete) {
        program_->end();
    }
}

bool Explorer::is_alone(unsigned thread) const
{
    for (unsigned i = 0; i < thread_count_; ++i) {
        if (i != thread &&
            (!threads_[i].has_ended || !threads_[i].puts.empty())) {
            return false;
        }
    }
    return true;
}

bool Explorer::is_enabled(unsigned thread) const
{
    const Thread &it = threads_[thread];
    return !it.has_ended && (!it.is_spinning || has_changed(it)) &&
           (!it.is_waiting || program_->is_ready(thread));
}

bool Explorer::has_changed(const Thread &thread) const
{
    bool has_changed = false;
    for (const Load &load : thread.loads) {
        has_changed =
            has_changed || read_own(thread, load.at, load.size) != load.value;
    }
    return has_changed;
}

unsigned Explorer::list_choices(Choice *choices) const
{
    unsigned count = 0;
    for (unsigned i = 0; i < thread_count_; ++i) {
        if (is_enabled(i)) {
            choices[count++] = {i, false};
        }
        if (!threads_[i].puts.empty()) {
            choices[count++] = {i, true};
        }
    }
    return count;
}

// False when the run is over.
bool Explorer::choose(Choice *choice)
{
    Choice choices[2 * most_threads];
    const unsigned count = list_choices(choices);
    if (verdict_ != Verdict::none) {
        return false;
    }
    if (count == 0) {
        verdict_ = Verdict::complete;
        for (unsigned i = 0; i < thread_count_; ++i) {
            if (!threads_[i].has_ended) {
                failure_ = "a thread waits for ever";
                verdict_ = Verdict::failed;
            }
        }
        return false;
    }
    if (++steps_ > most_steps) {
        failure_ = "does not end";
        verdict_ = Verdict::failed;
        return false;
    }
    *choice = choices[0];
    if (count > 1) {
        if (depth_ == nodes_.size() && !add_node(count)) {
            return false;
        }
        const Node &node = nodes_[depth_++];
        if (node.count != count) {
            failure_ = "a run differs from the one that it repeats";
            verdict_ = Verdict::failed;
            return false;
        }
        *choice = choices[node.choice];
    }
    return true;
}

// False when the state is known.
bool Explorer::add_node(unsigned count)
{
    const uint64_t state = hash();
    if (known_.count(state) != 0) {
        known_hash_ = state;
        verdict_ = Verdict::known;
        return false;
    }
    ++result_.states;
    nodes_.push_back({state, 0, count, 0});
    return true;
}

uint64_t Explorer::hash() const
{
    uint64_t hash = program_->hash();
    for (unsigned i = 0; i < thread_count_; ++i) {
        const Thread &thread = threads_[i];
        hash = mix(hash, thread.history);
        hash = mix(hash, thread.has_ended + 2U * thread.is_spinning +
                             4U * thread.is_waiting + 8U * thread.puts.size());
        for (const Load &load : thread.loads) {
            hash = mix(hash, reinterpret_cast<uintptr_t>(load.at));
            hash = mix(hash, load.value);
        }
        for (const Put &put : thread.puts) {
            hash = mix(hash, reinterpret_cast<uintptr_t>(put.at));
            hash = mix(hash, put.value);
            hash = mix(hash, put.token);
        }
    }
    return hash;
}

// Returns when the caller has its turn; or, to nobody, when the run is over.
void Explorer::schedule()
{
    const unsigned self = running_;
    Choice choice;
    while (choose(&choice)) {
        if (choice.is_flush) {
            flush(choice.thread);
        } else if (choice.thread == self) {
            return;
        } else {
            running_ = choice.thread;
            Fiber &from = self == nobody ? main_ : fibers_[self];
            from.switch_to(&fibers_[choice.thread]);
            return;
        }
    }
    if (self != nobody) {
        leave(verdict_);
    }
}

// Does not return.
void Explorer::leave(Verdict verdict)
{
    verdict_ = verdict;
    fibers_[running_].switch_to(&main_);
}

void Explorer::take_turn()
{
    Thread &self = threads_[running_];
    if (self.is_new) {
        self.is_new = false;
        fibers_[running_].switch_to(&main_);
    } else {
        schedule();
    }
    if (self.is_spinning) {
        self.is_spinning = false;
        self.loads.clear();
    }
}

uint64_t Explorer::access(const Access &access)
{
    if (running_ == nobody) {
        program_->on_access(nobody, access);
        const uint64_t was = read(access.at, access.size);
        if (access.kind != Kind::load &&
            (access.kind != Kind::swap || was == access.expected)) {
            change(program_->token(nobody), access.at, access.size,
                   next_value(access, was));
        }
        return was;
    }
    Thread &self = threads_[running_];
    see_memory(&self);
    // What no other thread could tell needs no turn.
    bool is_own = access.kind == Kind::put;
    for (const Put &put : self.puts) {
        is_own = is_own || (access.kind == Kind::load && put.at == access.at);
    }
    if (!is_own || self.is_spinning) {
        take_turn();
    }
    program_->on_access(running_, access);
    const uint64_t was = perform(access);
    remember(reinterpret_cast<uintptr_t>(access.at) +
             static_cast<uint64_t>(access.kind));
    remember(program_->plain(running_));
    see_own(&self);
    return was;
}

uint64_t Explorer::read_own(const Thread &thread, const void *at,
                            unsigned size) const
{
    uint64_t value = read(at, size);
    for (const Put &put : thread.puts) {
        value = put.at == at ? put.value : value;
    }
    return value;
}

uint64_t Explorer::perform(const Access &access)
{
    Thread &self = threads_[running_];
    const uint64_t was = read_own(self, access.at, access.size);
    const bool is_load = access.kind == Kind::load ||
                         (access.kind == Kind::swap && was != access.expected);
    tell(access, was);
    if (is_load && self.may_spin) {
        self.loads.push_back({access.at, was, access.size});
    } else if (is_load) {
        return was;
    } else if (access.kind == Kind::put) {
        self.puts.push_back({access.at, access.value, program_->token(running_),
                             0, access.size});
    } else {
        while (!self.puts.empty()) {
            flush(running_);
        }
        change(program_->token(running_), access.at, access.size,
               next_value(access, was));
    }
    return was;
}

void Explorer::flush(unsigned thread)
{
    const Put put = threads_[thread].puts.front();
    threads_[thread].puts.erase(threads_[thread].puts.begin());
    if (is_telling_) {
        result_.steps.push_back("thread " + std::to_string(thread) +
                                "'s put of " + program_->name_of(put.at) +
                                " = " + program_->text_of(put.value) +
                                " comes to memory");
    }
    change(put.token, put.at, put.size, put.value);
}

void Explorer::change(uint64_t token, void *at, unsigned size, uint64_t value)
{
    const uint64_t was = read(at, size);
    write(at, size, value);
    program_->on_write(token, at, was, value);
}

// The thread runs, and may read without announcing it what it has put; so it
// is in memory meanwhile.
void Explorer::see_own(Thread *thread)
{
    for (Put &put : thread->puts) {
        put.under = read(put.at, put.size);
        write(put.at, put.size, put.value);
    }
}

void Explorer::see_memory(Thread *thread)
{
    for (size_t i = thread->puts.size(); i-- > 0;) {
        const Put &put = thread->puts[i];
        write(put.at, put.size, put.under);
    }
}

void Explorer::pause()
{
    if (running_ == nobody || !threads_[running_].may_spin) {
        fail("spins where it must not");
    } else {
        threads_[running_].is_spinning = true;
    }
}

void Explorer::may_spin(bool may_spin)
{
    if (running_ != nobody) {
        threads_[running_].may_spin = may_spin;
        threads_[running_].loads.clear();
    }
}

void Explorer::wait()
{
    Thread &self = threads_[running_];
    see_memory(&self);
    self.is_waiting = true;
    take_turn();
    self.is_waiting = false;
    see_own(&self);
}

void Explorer::forget(uint64_t hash)
{
    Thread &self = threads_[running_];
    self.history = hash;
}

void Explorer::remember(uint64_t value)
{
    if (running_ != nobody) {
        threads_[running_].history = mix(threads_[running_].history, value);
    }
}

void Explorer::fail(const char *what)
{
    if (verdict_ != Verdict::failed) {
        failure_ = what;
    }
    verdict_ = Verdict::failed;
    if (is_telling_) {
        result_.steps.emplace_back(what);
    }
    if (running_ != nobody) {
        leave(Verdict::failed);
    }
}

void Explorer::refuse()
{
    if (running_ != nobody) {
        leave(Verdict::refused);
    }
}

void Explorer::tell(const Access &access, uint64_t was)
{
    if (!is_telling_) {
        return;
    }
    std::string text = program_->describe(running_) + ": ";
    text += kind_names[static_cast<unsigned>(access.kind)];
    text += ' ' + program_->name_of(access.at) + ", " + program_->text_of(was);
    if (access.kind == Kind::swap && was != access.expected) {
        text += ", not " + program_->text_of(access.expected);
    } else if (access.kind != Kind::load) {
        text += " -> " + program_->text_of(next_value(access, was));
    }
    result_.steps.push_back(text);
}

} // namespace shared_explore
