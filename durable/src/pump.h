// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A pump: it calls lawn_fire for each shard when its schedule says so, listens
// to the messages about earlier timers, and gives cron timers their next time.
//
// Pumps know of each other by their heart-beats. Each shard is left to one of
// them, and the others call a little later. That only saves calls: none of it
// is needed for timers to fire, once, in time.

#ifndef LAWN_SRC_DURABLE_PUMP_H
#define LAWN_SRC_DURABLE_PUMP_H

#include "src/codec.h"
#include "src/handle.h"
#include "src/schedule.h"

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace lawn::durable
{

class Cron;

struct PumpConfig {
    std::string name;
    uint64_t prefetch_us = 0;
    uint64_t coalesce_us = 0;
};

class PumpCore final : public Attachable<PumpCore>,
                       private Schedule::Store,
                       private Watched
{
public:
    PumpCore(lawn_durable_t *durable, PumpConfig config);
    ~PumpCore();

    // Begins when the store is reached.
    void open();
    void close();

    std::string error() const;
    const lawn_durable_pump_stats_t &stats() const
    {
        return stats_;
    }

private:
    void start();
    void open_channel(std::vector<unsigned> shards);
    void on_connected(const std::vector<unsigned> &shards);
    void on_message(std::string_view channel, std::string_view message);
    void sweep();
    void sweep_soon();

    void fire(unsigned shard, uint64_t call) override;
    int64_t store_time(unsigned shard, lawn_time_t time) override;
    lawn_time_t send_time(unsigned shard, int64_t store_us) override;
    void on_fired(unsigned shard, uint64_t call, unsigned dues,
                  const Answer &answer);
    // Keeps in *error why the call that was to do `what` has failed, unless
    // that passes.
    static void note_failure(const std::string &what, const Answer &answer,
                             std::string *error);

    void beat(bool is_staying);
    void on_beat(const Answer &answer);

    void renew_crons(unsigned shard);
    void on_crons(unsigned shard, const Answer &answer);
    // `error`: what keeps others of them from their next time, or "".
    void on_renewed(unsigned shard, const std::string &error,
                    const Answer &answer);
    bool find_next(const CronTimer &timer, int64_t *next_us);

    // Something happened in this poll: counts it, and arms the timer at the
    // end of the poll.
    void touch();
    void on_events(uint32_t) override
    {
    }
    void flush() override;

    Link &link_;
    const PumpConfig config_;
    std::unique_ptr<Schedule> schedule_;
    std::vector<std::unique_ptr<Channel>> channels_;
    std::unordered_map<std::string, unsigned> shard_of_channel_;
    std::vector<bool> is_near_; // answers of a shard come soon
    std::vector<bool> is_renewing_;
    std::vector<bool> renews_again_;       // more may have come meanwhile
    std::vector<std::string> errors_;      // why a shard cannot be fired, or ""
    std::vector<std::string> cron_errors_; // the same of its cron timers
    std::string beat_error_;               // why others are not heard of, or ""
    std::map<std::string, std::unique_ptr<Cron>> crons_; // parsed already
    Timer call_timer_;
    Timer beat_timer_;
    Timer sweep_timer_;
    lawn_durable_pump_stats_t stats_ = {};
    bool is_touched_ = false;
    bool is_closed_ = false;
};

} // namespace lawn::durable

#endif
