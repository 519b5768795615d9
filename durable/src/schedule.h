// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// When a pump calls lawn_fire for which shard. This is the pump without its
// connections: it is told what the store has answered, and it says when to
// call. The time is an argument, so tests run it on virtual time.
//
// A call fires what is due when it arrives, and its answer lists the due times
// to come. The schedule holds these times in a lawn_t, with one timer for each
// shard, and calls at each of them. It does not wait for the answer to the call
// before, so the round trip delays nothing. Nothing is taken out of the store
// ahead of time. So a pump that dies leaves nothing behind, and a call too many
// is harmless.

#ifndef LAWN_SRC_DURABLE_SCHEDULE_H
#define LAWN_SRC_DURABLE_SCHEDULE_H

#include <lawn/timer.h>

#include <stdint.h>

#include <string>
#include <vector>

namespace lawn::durable
{

constexpr int64_t never_us = INT64_MAX;

// What the store answers to a call of lawn_fire.
struct FireReply {
    int64_t now_us = 0;        // the store's clock
    uint64_t fired = 0;        // how many timers the call has fired
    std::vector<int64_t> dues; // the next due times, ascending
    bool is_full = false;      // there are more of them than one answer has
    bool is_more = false;      // more is due than the limit of a call
};

struct ScheduleParams {
    lawn_time_t coalesce = 0;     // calls for a shard are this far apart
    lawn_time_t backup_delay = 0; // how long a shard is left to its own pump
    lawn_time_t acting = 0;       // how long a backup that was needed stays one
    int64_t prefetch_us = 0;      // how far the answers look ahead
    unsigned max_calls = 0;       // that wait for their answers, of a shard
};

class Schedule
{
public:
    // What the schedule asks of the pump.
    class Store
    {
    public:
        // Sends lawn_fire for `shard`, and calls on_answer() or on_lost() with
        // `call` later, not from within.
        virtual void fire(unsigned shard, uint64_t call) = 0;
        // See Link::store_time() and Link::send_time().
        virtual int64_t store_time(unsigned shard, lawn_time_t time) = 0;
        virtual lawn_time_t send_time(unsigned shard, int64_t store_us) = 0;

    protected:
        ~Store() = default;
    };

    // Throws std::bad_alloc.
    Schedule(Store &store, unsigned shards, const ScheduleParams &params);
    ~Schedule();
    Schedule(const Schedule &) = delete;
    Schedule &operator=(const Schedule &) = delete;

    // When to call run() next. LAWN_TIME_INFINITY: after one of the other
    // functions.
    lawn_time_t next();

    // Makes the calls whose time has come.
    void run(lawn_time_t now);

    // Calls for the shard as soon as possible: what is due is not known.
    void ask(unsigned shard, lawn_time_t now);

    // A timer of the shard has become the first one, and is due at `due_us`.
    void wake(unsigned shard, int64_t due_us, lawn_time_t now);

    // If the answer has the store's clock, it was noted before.
    void on_answer(unsigned shard, uint64_t call, FireReply reply,
                   lawn_time_t now);

    // The call failed, and whether the store has run it is unknown.
    void on_lost(unsigned shard, uint64_t call, lawn_time_t now);

    // A backup calls later than the pump that the shard is left to.
    void set_backup(unsigned shard, bool is_backup, lawn_time_t now);

    // No further calls, for a pump that ends.
    void stop();

    unsigned shards() const
    {
        return static_cast<unsigned>(shards_.size());
    }

    // How many calls wait for their answers.
    unsigned calls() const
    {
        return calls_;
    }

private:
    struct Alarm {
        lawn_timer_t timer; // the next call
        Schedule *schedule;
        unsigned shard;
        Alarm *next; // of those that have expired
    };

    struct Shard {
        Alarm alarm;
        std::vector<int64_t> dues;   // ascending
        std::vector<uint64_t> calls; // without their answers yet
        int64_t covered_us;          // a call for what is due then was sent
        int64_t known_us;            // `dues` has all until then
        int64_t wake_us;             // the earliest due time of wake messages
        uint64_t wake_call;          // the last call before the latest of them
        lawn_time_t sent;            // the latest call
        lawn_time_t acting_until;    // a backup that was needed until then
        lawn_time_t not_before;      // the pause after a lost call
        unsigned lost;               // calls in succession
        bool is_asked;
        bool is_backup;
    };

    static void on_timer(lawn_timer_t *timer, lawn_time_t now);
    unsigned index(const Shard &shard) const;
    int64_t first_due(const Shard &shard) const;
    lawn_time_t time_of_due(const Shard &shard, lawn_time_t now) const;
    lawn_time_t time_of_call(const Shard &shard, lawn_time_t now) const;
    bool take_call(Shard *shard, uint64_t call);
    void arm(Shard *shard, lawn_time_t now);
    void call(Shard *shard, lawn_time_t now);

    Store &store_;
    ScheduleParams params_;
    lawn_t *lawn_ = nullptr;
    Alarm *expired_ = nullptr;
    std::vector<Shard> shards_;
    uint64_t last_call_ = 0;
    unsigned calls_ = 0;
    bool is_stopped_ = false;
};

// Which of the pumps that are alive shall call first for `shard`? The answer is
// the same for all who ask with the same pumps, in any order, and few shards
// change hands when a pump comes or goes (rendezvous hashing). If there are no
// pumps it is an empty string.
std::string preferred_pump(const std::vector<std::string> &pumps,
                           unsigned shard);

} // namespace lawn::durable

#endif
