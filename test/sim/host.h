// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A host: an engine, a clock, and a receive queue as deep as two polls empty.
//
// A host polls all the time, which is simulated only as far as it matters:
// between two events a pass finds nothing to do, and only as many are made as
// it takes for the library not to see a stall. One host in eight sleeps
// instead, between lawn_engine_arm() and the deadline or a packet.

#ifndef LAWN_TEST_SIM_HOST_H
#define LAWN_TEST_SIM_HOST_H

#include "clock.h"
#include "end.h"
#include "shared.h"
#include "witness.h"

#include <lawn/engine.h>

#include <vector>

namespace sim
{

class Host
{
public:
    Host(Shared &shared, uint32_t index);
    ~Host();

    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;

    void boot(Nsec at);
    void crash(Nsec at);

    // Makes no passes from here on, and again; `suspends`: nor does its clock.
    void stall(Nsec at, bool suspends);
    void resume(Nsec at);

    // Lets `change` have the clock, between two passes.
    template <class Change> void adjust_clock(Nsec at, Change change)
    {
        pass(at);
        change(clock_);
        after_absence(at);
    }

    void pass(Nsec at);
    void arrive(const Packet &packet, Nsec at);

    // Opens an end when the host makes a pass next.
    void open(uint32_t end, Nsec at);

    // Closes an end, which tells nobody.
    void kill(uint32_t end, Nsec at);

    // Looks whether anything is overdue.
    void sweep(Nsec at);
    void check_structure(Nsec at);

    uint32_t index() const
    {
        return index_;
    }

    uint32_t boots() const
    {
        return boots_;
    }

    uint64_t rate() const
    {
        return rate_;
    }

    Standing &standing()
    {
        return shared_.standing[index_];
    }

    const std::vector<uint32_t> &ends() const
    {
        return ends_;
    }

    void add_end(uint32_t end)
    {
        ends_.push_back(end);
    }

    lawn_time_t ticks(Nsec span) const
    {
        return static_cast<lawn_time_t>(uint128{span} * rate_ / sec);
    }

    // For the ends.
    Shared &shared()
    {
        return shared_;
    }

    lawn_engine_t *engine()
    {
        return engine_;
    }

    const Pass &current() const
    {
        return pass_;
    }

    const lawn_conn_params_t &terms(uint32_t end) const;
    Scene scene(uint32_t end);
    void send(uint32_t from, Kind kind, uint32_t number, uint64_t content,
              lawn_time_t stamp);
    void count_fired()
    {
        ++fired_;
    }
    bool is_waiting(uint32_t end) const;

private:
    unsigned poll();
    void catch_up(Nsec at);
    void after_absence(Nsec at);
    void progress(Nsec at, lawn_time_t covered);
    lawn_time_t go_on(Nsec at);
    void check_pass(unsigned touched, bool is_woken);
    void plan(Nsec at);
    bool check_sleep();
    // On the engine's time, as far as the clock has gone back until now.
    lawn_time_t time_at(Nsec at) const
    {
        return clock_.read(at) + offset_;
    }

    size_t waiting() const
    {
        return queue_.size() - taken_;
    }

    Shared &shared_;
    const uint32_t index_;
    const bool sleeps_;
    const uint64_t rate_; // ticks per second, as it was told
    const lawn_time_t stall_threshold_;
    size_t batch_ = 0; // packets that a poll takes
    std::vector<uint32_t> ends_;
    std::vector<lawn_conn_params_t> terms_;

    lawn_engine_t *engine_ = nullptr;
    uint32_t boots_ = 0;
    Clock clock_;
    lawn_time_t reading_ = 0;
    lawn_time_t offset_ = 0; // by which the clock has gone back
    uint64_t steps_ = 0;     // times that it has
    lawn_time_t stall_at_ = LAWN_TIME_INFINITY;
    Pass pass_ = {};
    unsigned polls_ = 0;  // of the source, in this pass
    unsigned polled_ = 0; // what they did
    unsigned fired_ = 0;  // timers, in this pass
    bool is_full_ = false;
    bool is_before_ = false; // what has come comes after this pass
    bool is_asleep_ = false;
    bool is_settled_ = false; // and until its next deadline exactly
    Nsec &wake_;              // when the host has something to do by itself

    std::vector<Packet> queue_;
    size_t taken_ = 0; // of the queue
    std::vector<uint32_t> opening_;
};

} // namespace sim

#endif
