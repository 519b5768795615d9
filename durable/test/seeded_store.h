// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A Redis server at the other end of a SeededNetwork. While that has faults,
// replies are lost, late, in halves or errors, before or after what they are
// about is done.

#ifndef LAWN_TEST_DURABLE_SEEDED_STORE_H
#define LAWN_TEST_DURABLE_SEEDED_STORE_H

#include "seeded_model.h"
#include "seeded_network.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lawn_test
{

class SeededStore final : public SeededNetwork::Server,
                          private SeededModel::Owner
{
public:
    void begin(SeededNetwork *network, unsigned shards)
    {
        SeededModel::Owner &owner = *this;
        network_ = network;
        model_.emplace(owner, shards);
        model_->writes_through = network->random(2) == 0;
    }

    // Something goes wrong with the command of that number, from 1 on: what, is
    // below the number of faults.
    void plan_fault(uint64_t step, unsigned fault)
    {
        fault_step_ = step;
        fault_ = fault;
    }
    static constexpr unsigned faults = 15;

    // Its clock.
    int64_t time_us() const override
    {
        return 1700000000000000 + network_->now();
    }
    const SeededModel &model() const
    {
        return *model_;
    }
    void seek(uint64_t gone)
    {
        model_->seek(network_->random(3), gone);
    }
    uint64_t commands() const
    {
        return commands_;
    }

    // For people: what it was told, and what it said.
    bool keeps_log = false;
    const std::string &log() const
    {
        return log_;
    }

    void on_bytes(SeededNetwork::Number connection,
                  std::string_view bytes) override;
    void on_end(SeededNetwork::Number connection) override;

private:
    using Words = resp::Words;

    struct Peer {
        std::string in;
        bool is_subscribed = false;
        Words blocked; // XREADGROUP; empty: none
        uint64_t block = 0;
        uint64_t last_write = 0;
    };

    void publish(const std::string &message) override;
    void serve(SeededNetwork::Number number, Peer *peer, const Words &words);
    bool is_planned() const;
    bool refuse(SeededNetwork::Number number, const Words &words);
    bool refuse(SeededNetwork::Number number, const Words &words,
                unsigned fault);
    void reply(SeededNetwork::Number number, const std::string &text);
    void fail(SeededNetwork::Number number, const std::string &text,
              unsigned fault);
    void say(SeededNetwork::Number number, const std::string &reply,
             int64_t delay_us = 0);
    std::string carry_out(Peer *peer, const Words &words);
    std::string call(Peer *peer, const Words &words);
    std::string tell_settings();
    bool makes_safe(const Peer &peer, SeededModel::Place place);
    void block(SeededNetwork::Number number, Peer *peer, const Words &words);
    void feed_readers();

    SeededNetwork *network_ = nullptr;
    std::optional<SeededModel> model_;
    std::map<SeededNetwork::Number, Peer> peers_;
    uint64_t fault_step_ = 0;
    unsigned fault_ = 0;
    bool has_functions_ = true;
    bool loses_functions_again_ = false; // once they are loaded
    uint64_t commands_ = 0;
    std::string log_;
};

} // namespace lawn_test

#endif
