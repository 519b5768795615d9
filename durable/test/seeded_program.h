// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A program of a SeededWorld: a client with a pump and a consumer. It answers
// what it is given as chance has it: in time, late, not at all, by closing its
// consumer. What the consumer is told is checked.

#ifndef LAWN_TEST_DURABLE_SEEDED_PROGRAM_H
#define LAWN_TEST_DURABLE_SEEDED_PROGRAM_H

#include <lawn/durable.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

namespace lawn_test
{

class SeededWorld;

class SeededProgram
{
public:
    static constexpr uint64_t lease_us = 500000;

    SeededProgram(SeededWorld &world, std::string name);
    ~SeededProgram();
    SeededProgram(const SeededProgram &) = delete;
    SeededProgram &operator=(const SeededProgram &) = delete;

    const std::string &name() const
    {
        return name_;
    }
    lawn_durable_t *client() const
    {
        return durable_;
    }
    bool is_closing() const
    {
        return is_closing_;
    }
    // Whether it wants to be polled now, and when it does at the latest.
    bool is_ready() const;
    int64_t next_poll_us() const;
    // Whether the store has all its answers, as far as it knows.
    bool is_done() const;
    bool is_well() const;

    // It dies, closes or loses something, or nothing.
    void do_something();
    // For good.
    void close_consumer();
    void close_pump();

private:
    struct Answer {
        SeededProgram *program = nullptr;
        lawn_durable_answer_t answer = LAWN_DURABLE_DONE;
        bool is_answered = false;
    };

    void open();
    void close();
    void open_pump();
    void open_consumer();
    void open_consumer_again();
    void deliver(const lawn_durable_delivery_t *delivery);
    void handle(const lawn_durable_delivery_t *delivery);
    void work(const lawn_durable_delivery_t *delivery, int64_t until_us);
    void answer(const lawn_durable_delivery_t *delivery,
                lawn_durable_answer_t answer, uint64_t delay_us);
    void on_answered(Answer *answer, const lawn_durable_result_t &result);
    void on_lost(const lawn_durable_delivery_t *delivery);

    SeededWorld &world_;
    const std::string name_;
    lawn_durable_t *durable_ = nullptr;
    lawn_durable_pump_t *pump_ = nullptr;
    lawn_durable_consumer_t *consumer_ = nullptr;
    bool is_closing_ = false;
    // Of the consumer, which has a new name in some of its lives.
    unsigned names_ = 0;
    size_t max_in_flight_ = 0;
    bool hears_of_lost_ = false;
    uint64_t lost_ = 0;
    // Not answered, with the number of the giving: a later one may be at the
    // same address.
    std::map<const lawn_durable_delivery_t *, uint64_t> held_;
    uint64_t given_ = 0;
    std::set<const lawn_durable_delivery_t *> extended_; // those that are
    std::deque<Answer> answers_;
};

} // namespace lawn_test

#endif
