// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A primary with one replica, neither of which has a disk, and a sentinel. The
// primary is killed, the sentinel promotes the replica, and what was the
// primary comes back as the replica of the other. Before every second kill the
// replica is cut off for a while: what is acknowledged then without waiting
// for it is surely lost.

#include "common.h"
#include "server.h"
#include "store.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <random>

namespace lawn_verify
{

namespace
{

constexpr int64_t ms = 1000;
constexpr int64_t least_rest_us = 500 * ms;
constexpr int64_t most_rest_us = 2500 * ms;
constexpr int64_t longest_cut_us = 500 * ms;
constexpr int64_t look_pause_us = 100 * ms;
// The sentinel takes less to promote a replica when the primary is slow.
constexpr int64_t longest_doubt_us = 20000 * ms;
constexpr char master_name[] = "lawn";

// The value of a name in a list of names and values; "" if there is none.
std::string value_of(const redisReply &list, const std::string &name)
{
    for (size_t i = 0; i + 1 < list.elements; i += 2) {
        const redisReply &key = *list.element[i];
        const redisReply &value = *list.element[i + 1];
        if (key.str != nullptr && value.str != nullptr && key.str == name) {
            return value.str;
        }
    }
    return "";
}

class Failover final : public Store
{
public:
    Failover(const std::string &directory, uint64_t seed);

    std::string url() const override
    {
        return "sentinel://" + sentinel_.address() + "/" + master_name;
    }

    bool is_replicated() const override
    {
        return true;
    }

    std::string advance(bool begins_more) override;

    bool is_whole() const override
    {
        return phase_ == Phase::resting;
    }

private:
    enum class Phase {
        resting,
        cut,       // the replica is, and the primary about to be killed
        killed,    // until the replica is promoted
        returning, // until the old primary is a replica, and known as such
    };

    Server &primary()
    {
        return *servers_[primary_];
    }

    Server &replica()
    {
        return *servers_[1 - primary_];
    }

    void go_to(Phase phase, int64_t until_us);
    void cut_off();
    void kill();
    bool is_promoted();
    bool is_replicating();
    void forget_replica();
    void look_at_replica();
    bool is_replica_known();
    int64_t between(int64_t least_us, int64_t most_us);

    std::array<std::unique_ptr<Server>, 2> servers_;
    Server sentinel_;
    std::mt19937_64 random_;
    size_t primary_ = 0;
    Phase phase_ = Phase::returning;
    int64_t until_us_ = 0;
    bool cuts_ = false;
    int64_t begun_us_ = 0;
    int64_t killed_us_ = 0;

    // The replica is known to have what the primary had at `caught_up_us_`.
    // Next it is awaited at `awaited_`, where the primary was at `awaited_us_`.
    int64_t caught_up_us_ = 0;
    int64_t awaited_ = -1;
    int64_t awaited_us_ = 0;
    int64_t looked_us_ = 0;
};

Failover::Failover(const std::string &directory, uint64_t seed)
    : sentinel_(directory, "sentinel", free_port(), {}), random_(seed)
{
    const Words options = {"--appendonly", "no",
                           // a replica that is back gets the data at once
                           "--repl-diskless-sync-delay", "0"};
    servers_[0] =
        std::make_unique<Server>(directory, "redis-1", free_port(), options);
    servers_[1] =
        std::make_unique<Server>(directory, "redis-2", free_port(), options);
    primary().start();
    primary().await();
    replica().start(
        {"--replicaof", "127.0.0.1", std::to_string(primary().port())});
    replica().await();
    // A sentinel writes to its file.
    const std::string file = directory + "/sentinel.conf";
    const std::string name = master_name;
    std::ofstream(file) << "port " << sentinel_.port()
                        << "\nbind 127.0.0.1\ndir " << directory
                        << "/sentinel\nsentinel monitor " << name
                        << " 127.0.0.1 " << primary().port()
                        << " 1\nsentinel down-after-milliseconds " << name
                        << " 3000\nsentinel failover-timeout " << name
                        << " 6000\n";
    const int64_t until_us = patience_end();
    while (!is_replicating() && monotonic_now() < until_us) {
        pause_between_looks();
    }
    sentinel_.start_as({server_program(), file, "--sentinel"});
    sentinel_.await();
    go_to(Phase::returning, patience_end());
}

int64_t Failover::between(int64_t least_us, int64_t most_us)
{
    const auto span = static_cast<uint64_t>(most_us - least_us + 1);
    return least_us + static_cast<int64_t>(random_() % span);
}

void Failover::go_to(Phase phase, int64_t until_us)
{
    phase_ = phase;
    until_us_ = until_us;
}

// The primary takes no password, so a replica that gives one is turned away.
void Failover::cut_off()
{
    replica().ask({"CONFIG", "SET", "masterauth", "wrong"});
    primary().ask({"CLIENT", "KILL", "TYPE", "replica"});
}

void Failover::kill()
{
    primary().kill();
    killed_us_ = history_now();
    go_to(Phase::killed, patience_end());
}

bool Failover::is_promoted()
{
    const auto address =
        sentinel_.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name});
    if (address == nullptr || address->elements != 2 ||
        address->element[1]->str != std::to_string(replica().port())) {
        return false;
    }
    const auto role = replica().ask({"ROLE"});
    return role != nullptr && role->elements > 0 &&
           role->element[0]->str == std::string("master");
}

bool Failover::is_replicating()
{
    const std::string info = primary().text_of({"INFO", "replication"});
    return info.find("state=online") != std::string::npos;
}

// The number that follows `name` in a text; -1 if there is none.
int64_t number_after(const std::string &text, const std::string &name)
{
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : atoll(&text[at + name.size()]);
}

// Which is another one from now on.
void Failover::forget_replica()
{
    caught_up_us_ = 0;
    awaited_ = -1;
}

// A replica on a busy machine may be far behind, also one that is online.
void Failover::look_at_replica()
{
    if (monotonic_now() < looked_us_ + look_pause_us) {
        return;
    }
    looked_us_ = monotonic_now();
    const int64_t now = history_now();
    const std::string info = primary().text_of({"INFO", "replication"});
    if (awaited_ >= 0 && number_after(info, ",offset=") >= awaited_) {
        caught_up_us_ = awaited_us_;
        awaited_ = -1;
    }
    if (awaited_ < 0) {
        awaited_ = number_after(info, "master_repl_offset:");
        awaited_us_ = now;
    }
}

bool Failover::is_replica_known()
{
    const auto replicas = sentinel_.ask({"SENTINEL", "REPLICAS", master_name});
    return replicas != nullptr && replicas->elements == 1 &&
           value_of(*replicas->element[0], "flags") == "slave";
}

std::string Failover::advance(bool begins_more)
{
    const bool is_time = monotonic_now() >= until_us_;
    for (Server *server : {&primary(), &replica(), &sentinel_}) {
        const std::string wrong = server->find_ended();
        if (!wrong.empty()) {
            return wrong;
        }
    }
    switch (phase_) {
    case Phase::resting:
        if (is_promoted()) {
            // The primary was only slow, and is a replica now.
            begun_us_ = history_now() - longest_doubt_us;
            killed_us_ = history_now();
            primary_ = 1 - primary_;
            forget_replica();
            go_to(Phase::returning, patience_end());
            break;
        }
        look_at_replica();
        if (!is_time || !begins_more) {
            break;
        }
        begun_us_ = caught_up_us_;
        cuts_ = !cuts_;
        if (cuts_) {
            cut_off();
            go_to(Phase::cut, monotonic_now() + between(ms, longest_cut_us));
        } else {
            kill();
        }
        break;
    case Phase::cut:
        if (is_time) {
            kill();
        }
        break;
    case Phase::killed:
        if (is_promoted()) {
            replica().ask({"CONFIG", "SET", "masterauth", ""});
            primary_ = 1 - primary_;
            forget_replica();
            replica().start(
                {"--replicaof", "127.0.0.1", std::to_string(primary().port())});
            go_to(Phase::returning, patience_end());
        } else if (is_time) {
            return "the sentinel has promoted nobody";
        }
        break;
    case Phase::returning:
        look_at_replica();
        if (is_replicating() && is_replica_known() && caught_up_us_ != 0) {
            if (killed_us_ != 0) {
                note(word_failover, begun_us_, killed_us_);
            }
            go_to(Phase::resting,
                  monotonic_now() + between(least_rest_us, most_rest_us));
        } else if (is_time) {
            return "the replica has not come back";
        }
        break;
    }
    return "";
}

} // namespace

std::unique_ptr<Store> make_failover(const std::string &directory,
                                     uint64_t seed)
{
    return std::make_unique<Failover>(directory, seed);
}

} // namespace lawn_verify
