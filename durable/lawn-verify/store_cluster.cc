// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A Redis Cluster of three nodes that have everything on their disks before
// they answer. In turn, a part of a node's slots moves to the next node, and a
// node is killed and comes back. A fourth node joins soon. It is redis-cli that
// moves slots, as an operator would have it.

#include "common.h"
#include "server.h"
#include "store.h"

#include "src/cluster.h"

#include <random>

namespace lawn_verify
{

namespace
{

using lawn::durable::cluster_slots;
using lawn::durable::slot_of;

constexpr int64_t ms = 1000;
constexpr int64_t least_rest_us = 100 * ms;
constexpr int64_t most_rest_us = 1000 * ms;
constexpr int64_t longest_death_us = 1500 * ms;
constexpr unsigned first_nodes = 3;
constexpr unsigned most_nodes = 4;

class ClusterStore final : public Store
{
public:
    ClusterStore(const std::string &directory, uint64_t seed);

    std::string url() const override
    {
        return "redis://" + nodes_[0]->address();
    }

    unsigned shards() const override
    {
        return verify_cluster_shards;
    }

    std::string advance(bool begins_more) override;

    bool is_whole() const override
    {
        return phase_ == Phase::resting;
    }

    std::map<std::string, uint64_t> figures() const override
    {
        return {{"shards_moved", moved_}};
    }

private:
    enum class Phase {
        resting,
        working, // redis-cli is
        dead,    // a node is
        healing, // until the nodes agree
    };

    void go_to(Phase phase, int64_t until_us);
    void create();
    void begin();
    void run_cli(const Words &words);
    void add_node();
    void reshard(unsigned from, unsigned to);
    bool is_well();
    std::vector<unsigned> owners();
    int64_t between(int64_t least, int64_t most);

    const std::string directory_;
    std::vector<std::unique_ptr<Server>> nodes_;
    unsigned members_ = first_nodes;
    Process cli_;
    std::mt19937_64 random_;
    Phase phase_ = Phase::healing;
    int64_t until_us_ = 0;
    unsigned turn_ = 0;
    unsigned victim_ = 0;
    std::string word_;
    int64_t begun_us_ = 0;
    std::vector<unsigned> owners_;
    uint64_t moved_ = 0;
};

ClusterStore::ClusterStore(const std::string &directory, uint64_t seed)
    : directory_(directory), random_(seed)
{
    for (unsigned i = 0; i < most_nodes; ++i) {
        nodes_.push_back(std::make_unique<Server>(
            directory, "redis-" + std::to_string(i + 1), free_port(),
            Words{"--appendonly", "yes", "--appendfsync", "always",
                  "--cluster-enabled", "yes",
                  // a node that has lost its last slot takes others later
                  "--cluster-allow-replica-migration", "no",
                  // No node is dead or paused for so long.
                  "--cluster-node-timeout", "15000"}));
        nodes_.back()->start();
    }
    for (const auto &node : nodes_) {
        node->await();
    }
    create();
    go_to(Phase::healing, patience_end());
}

void ClusterStore::create()
{
    Words words = {"create"};
    for (unsigned i = 0; i < first_nodes; ++i) {
        words.push_back(nodes_[i]->address());
    }
    words.insert(words.end(), {"--cluster-replicas", "0"});
    run_cli(words);
    const int64_t until_us = patience_end();
    while (cli_.is_running() || !is_well()) {
        if (cli_.status().value_or(0) != 0 || monotonic_now() > until_us) {
            fail("redis-cli makes no cluster; see " + directory_ +
                 "/redis-cli.log");
        }
        pause_between_looks();
    }
    owners_ = owners();
}

int64_t ClusterStore::between(int64_t least, int64_t most)
{
    const auto span = static_cast<uint64_t>(most - least + 1);
    return least + static_cast<int64_t>(random_() % span);
}

void ClusterStore::go_to(Phase phase, int64_t until_us)
{
    phase_ = phase;
    until_us_ = until_us;
}

void ClusterStore::run_cli(const Words &words)
{
    Words all = {cli_program(), "--cluster"};
    all.insert(all.end(), words.begin(), words.end());
    all.push_back("--cluster-yes");
    cli_.start(all, directory_ + "/redis-cli.log");
}

void ClusterStore::add_node()
{
    word_ = "add-node";
    run_cli({"add-node", nodes_[members_]->address(), nodes_[0]->address()});
    ++members_;
}

// Half of what each would have.
void ClusterStore::reshard(unsigned from, unsigned to)
{
    word_ = "reshard";
    run_cli({"reshard", nodes_[0]->address(), "--cluster-from",
             nodes_[from]->text_of({"CLUSTER", "MYID"}), "--cluster-to",
             nodes_[to]->text_of({"CLUSTER", "MYID"}), "--cluster-slots",
             std::to_string(cluster_slots / members_ / 2)});
}

void ClusterStore::begin()
{
    const unsigned turn = turn_++;
    begun_us_ = history_now();
    if (turn == 1) {
        add_node();
        go_to(Phase::working, patience_end());
    } else if (turn % 4 == 3) {
        word_ = "kill-node";
        victim_ = static_cast<unsigned>(between(0, members_ - 1));
        nodes_[victim_]->kill();
        go_to(Phase::dead, monotonic_now() + between(ms, longest_death_us));
    } else {
        reshard(turn % members_, (turn + 1) % members_);
        go_to(Phase::working, patience_end());
    }
}

// The ports of the nodes that have the shards.
std::vector<unsigned> ClusterStore::owners()
{
    std::vector<unsigned> all(verify_cluster_shards);
    std::vector<lawn::durable::SlotRange> ranges;
    lawn::durable::read_slots(nodes_[0]->ask({"CLUSTER", "SLOTS"}).get(), {},
                              &ranges);
    for (unsigned i = 0; i < all.size(); ++i) {
        const unsigned slot =
            slot_of(std::string(verify_space) + ":" + std::to_string(i));
        for (const auto &range : ranges) {
            if (range.first <= slot && slot <= range.last) {
                all[i] = range.master.port;
            }
        }
    }
    return all;
}

bool ClusterStore::is_well()
{
    const std::string known =
        "cluster_known_nodes:" + std::to_string(members_) + "\r";
    for (unsigned i = 0; i < members_; ++i) {
        const std::string info = nodes_[i]->text_of({"CLUSTER", "INFO"});
        if (info.find("cluster_state:ok") == std::string::npos ||
            info.find(known) == std::string::npos) {
            return false;
        }
    }
    return true;
}

std::string ClusterStore::advance(bool begins_more)
{
    const bool is_time = monotonic_now() >= until_us_;
    for (unsigned i = 0; i < nodes_.size(); ++i) {
        const std::string wrong = nodes_[i]->find_ended();
        if (!wrong.empty()) {
            return wrong;
        }
    }
    switch (phase_) {
    case Phase::resting:
        if (is_time && begins_more) {
            begin();
        }
        break;
    case Phase::working:
        if (!cli_.is_running()) {
            if (cli_.status().value_or(1) != 0) {
                return "redis-cli has failed; see " + directory_ +
                       "/redis-cli.log";
            }
            go_to(Phase::healing, patience_end());
        } else if (is_time) {
            return "redis-cli does not end";
        }
        break;
    case Phase::dead:
        if (is_time) {
            nodes_[victim_]->start();
            go_to(Phase::healing, patience_end());
        }
        break;
    case Phase::healing:
        if (is_well()) {
            const std::vector<unsigned> before = owners_;
            owners_ = owners();
            for (size_t i = 0; i < owners_.size(); ++i) {
                moved_ += owners_[i] != before[i] ? 1U : 0U;
            }
            if (!word_.empty()) {
                note(word_.c_str(), begun_us_);
            }
            go_to(Phase::resting,
                  monotonic_now() + between(least_rest_us, most_rest_us));
        } else if (is_time) {
            return "the nodes of the cluster do not agree";
        }
        break;
    }
    return "";
}

} // namespace

std::unique_ptr<Store> make_cluster(const std::string &directory, uint64_t seed)
{
    return std::make_unique<ClusterStore>(directory, seed);
}

} // namespace lawn_verify
