// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One or two programs with pumps and consumers on virtual time, a store that
// fails them in ways that the seed chooses, and a judge of what lawn/durable.h
// promises whatever fails:
//
//   - each request is answered once, and OK only if the store has done it;
//   - a start that is repeated with its token is answered like the first;
//   - what is acknowledged is on the disk, or on a replica, if that was asked;
//   - of a start and a stop that are under way together, the stop is done last;
//   - an update is carried out once, and its repeats are answered like it;
//   - nothing is delivered before its time, nor more than max_in_flight;
//   - a lease that is extended is not lost, and where nothing fails an answer
//     that comes in time counts;
//   - when nothing fails any more, each timer is delivered and answered soon,
//     and so is a new one: nobody has fallen silent, or complains.

#ifndef LAWN_TEST_DURABLE_SEEDED_WORLD_H
#define LAWN_TEST_DURABLE_SEEDED_WORLD_H

#include "seeded_network.h"
#include "seeded_program.h"
#include "seeded_store.h"

#include <lawn/durable.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

namespace lawn_test
{

class SeededWorld
{
public:
    struct Options {
        unsigned faults_permille = 0; // how often what may go wrong does
        // How often that begins anew, with the programs as they are by then.
        unsigned rounds = 1;
        // The one command of which something goes wrong, and what does.
        uint64_t fault_step = 0;
        unsigned fault = 0;
        bool is_prompt = false; // all is answered at once, as done
        size_t programs = 0;    // 0: by chance
        // When the first program's consumer, or its pump, goes for good.
        int64_t consumer_goes_us = 0;
        int64_t pump_goes_us = 0;
    };

    SeededWorld(uint64_t seed, const Options &options);
    SeededWorld(const SeededWorld &) = delete;
    SeededWorld &operator=(const SeededWorld &) = delete;

    // Returns what was not as promised; "" if all was.
    std::string run();
    int64_t longest_lateness_us() const
    {
        return longest_lateness_us_;
    }

    // For its programs.
    SeededNetwork &network()
    {
        return network_;
    }
    SeededStore &store()
    {
        return store_;
    }
    void object(const std::string &what);
    void on_delivery(const lawn_durable_delivery_t &delivery);
    // All are to do what they are given at once.
    bool is_calm() const
    {
        return options_.is_prompt || network_.now() > faults_end_us_;
    }
    // Somebody answers what was given to another meanwhile, and is the first.
    void expect_late_answers()
    {
        is_late_answer_expected_ = true;
    }
    // Nothing takes a lease from who keeps it.
    bool are_leases_kept() const
    {
        return is_healthy_ && !is_late_answer_expected_;
    }

private:
    enum class Kind { start, stop, update };

    struct Timer {
        std::string id;
        uint64_t token = 0;
        uint64_t delay_us = 0;
        bool until_known = false;
        bool is_stopped_at_once = false;
        int durability = LAWN_DURABLE_ASYNC;
        bool is_acknowledged = false;
        uint64_t generation = 0;   // of its start
        uint64_t new_delay_us = 0; // by an update right after that; 0: none
        unsigned deliveries = 0;
    };

    struct Request {
        SeededWorld *world = nullptr;
        Timer *timer = nullptr;
        Kind kind = Kind::start;
        Request *together = nullptr; // a start and the stop right behind it
        bool is_answered = false;
        bool is_first = true;
        lawn_status_t status = LAWN_OK;
        int state = 0;
    };

    Request *request(Timer *timer, Kind kind);
    void send(Request *request);
    void on_done(Request *request, const lawn_durable_result_t &result);
    void on_started(Request *request, const lawn_durable_result_t &result);
    void on_updated(Request *request, const lawn_durable_result_t &result);
    void check_order(const Request &start, const Request &stop);
    void check_safety(uint64_t write, int durability);
    int random_durability();
    void repeat(Request *request);

    void begin_faults();
    void run_round();
    void add_timer(int64_t time_us, uint64_t delay_us);
    void add_timers();
    bool is_done() const;
    bool is_well() const;
    void run_until_done(int64_t limit_us);
    void run_until_well(int64_t limit_us);
    void go_on(int64_t limit_us);
    void poll();
    int64_t next_poll_us() const;
    std::string left() const;

    SeededStore store_;
    SeededNetwork network_;
    const Options options_;
    const bool is_healthy_;
    bool is_all_async_ = true;
    bool is_healed_ = false; // at the end of the faults
    int64_t faults_end_us_ = 0;
    bool is_late_answer_expected_ = false;
    int64_t longest_lateness_us_ = 0;
    std::deque<Timer> timers_;
    std::deque<Request> requests_;
    std::string objection_;
    std::deque<SeededProgram> programs_; // the last: they use all else
};

} // namespace lawn_test

#endif
