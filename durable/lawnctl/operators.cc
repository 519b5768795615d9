// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl list, dead, stats, drain and acknowledge.

#include "commands.h"
#include "output.h"

#include <optional>

namespace lawnctl
{

namespace
{

constexpr int64_t poll_us = 100000; // how often `drain` looks

lawn_durable_params_t impatient()
{
    lawn_durable_params_t params = {};
    params.fail_fast = true;
    return params;
}

lawn_durable_state_t parse_state(const std::string &text)
{
    for (const lawn_durable_state_t state :
         {LAWN_DURABLE_PENDING, LAWN_DURABLE_DELIVERED, LAWN_DURABLE_SUCCESS,
          LAWN_DURABLE_FAIL, LAWN_DURABLE_STOPPED, LAWN_DURABLE_DEAD}) {
        if (text == lawn_durable_state_string(state)) {
            return state;
        }
    }
    fail("'" + text +
         "' is none of pending, delivered, success, fail, "
         "stopped and dead");
}

bool is_open(lawn_durable_state_t state)
{
    return state == LAWN_DURABLE_PENDING || state == LAWN_DURABLE_DELIVERED;
}

// What the callbacks of a list share.
struct Listing {
    bool is_json = false;
    bool is_dead = false;
    std::optional<lawn_status_t> status;
    std::string error;
};

std::string item_line(const lawn_durable_item_t &item, bool is_dead)
{
    std::string line = item.id[0] != '\0' ? item.id : "-";
    if (!is_dead) {
        line += std::string(" ") + lawn_durable_state_string(item.state);
    }
    line += " " + std::to_string(item.generation) + " ";
    line += is_dead || is_open(item.state) ? time_text(item.due_us) : "-";
    line += " " + std::to_string(item.attempt);
    if (is_dead) {
        for (const char *const text : {item.reason, item.error}) {
            const std::string shown = text != nullptr ? text : "-";
            line += " " + payload_text(shown.data(), shown.size());
        }
    }
    return line;
}

std::string item_json(const lawn_durable_item_t &item, bool is_dead)
{
    Json json;
    json.id(item.id)
        .text("state", lawn_durable_state_string(item.state))
        .number("generation", item.generation);
    if (is_dead || is_open(item.state)) {
        json.time("due", item.due_us).number("attempt", item.attempt);
    }
    if (item.payload != nullptr) {
        json.payload(item.payload, item.payload_size);
    }
    if (item.reason != nullptr) {
        json.text("reason", item.reason);
    }
    if (item.error != nullptr) {
        json.text("error", item.error);
    }
    return json.str();
}

void on_item(void *arg, const lawn_durable_item_t *item)
{
    const auto *listing = static_cast<const Listing *>(arg);
    print_line(listing->is_json ? item_json(*item, listing->is_dead)
                                : item_line(*item, listing->is_dead));
}

void on_end(void *arg, const lawn_durable_result_t *result)
{
    auto *listing = static_cast<Listing *>(arg);
    listing->status = result->status;
    listing->error = result->error == nullptr ? "" : result->error;
}

void await_end(Client &client, Listing &listing)
{
    client.run([&] { return listing.status.has_value(); });
    if (!listing.status) {
        fail("interrupted");
    }
    require_success(*listing.status,
                    listing.error.empty() ? nullptr : listing.error.c_str());
}

struct Stats {
    bool is_there = false;
    lawn_durable_stats_t stats = {};
    std::string error;
};

void on_stats(void *arg, const lawn_durable_stats_t *stats)
{
    auto *to = static_cast<Stats *>(arg);
    to->is_there = true;
    to->stats = *stats;
    to->error = stats->error == nullptr ? "" : stats->error;
}

// None if a signal was caught.
std::optional<lawn_durable_stats_t> query_stats(Client &client)
{
    Stats stats;
    require_success(lawn_durable_stats(client.get(), on_stats, &stats),
                    nullptr);
    if (!client.run([&] { return stats.is_there; })) {
        // The answer must not come when `stats` is gone.
        while (!stats.is_there) {
            lawn_durable_wait(client.get(), UINT64_MAX);
        }
        return std::nullopt;
    }
    require_success(stats.stats.status,
                    stats.error.empty() ? nullptr : stats.error.c_str());
    return stats.stats;
}

// Of a request whose end `answer` gets. It is not interrupted.
void await(Client &client, lawn_status_t status, const Listing &answer)
{
    require_success(status, nullptr);
    while (!answer.status) {
        lawn_durable_wait(client.get(), UINT64_MAX);
    }
    require_success(*answer.status,
                    answer.error.empty() ? nullptr : answer.error.c_str());
}

void set_draining(Client &client, bool is_draining)
{
    Listing answer;
    await(client,
          lawn_durable_drain(client.get(), is_draining, on_end, &answer),
          answer);
}

} // namespace

int command_list(const Settings &settings, Arguments &arguments)
{
    const auto text = arguments.take_text("--state");
    const lawn_durable_state_t state =
        text ? parse_state(*text) : LAWN_DURABLE_UNKNOWN;
    const uint64_t limit =
        arguments.take_number("--limit", 1, INT64_MAX / 2).value_or(0);
    arguments.finish();
    Client client(settings, impatient());
    Listing listing;
    listing.is_json = settings.json;
    require_success(lawn_durable_list(client.get(), state, limit, on_item,
                                      on_end, &listing),
                    nullptr);
    await_end(client, listing);
    return 0;
}

int command_dead(const Settings &settings, Arguments &arguments)
{
    const auto id = arguments.take_text("--replay");
    const uint64_t limit =
        arguments.take_number("--limit", 1, INT64_MAX / 2).value_or(0);
    arguments.finish();
    Client client(settings, impatient());
    Listing listing;
    listing.is_json = settings.json;
    listing.is_dead = true;
    if (!id) {
        require_success(lawn_durable_list_dead(client.get(), limit, on_item,
                                               on_end, &listing),
                        nullptr);
        await_end(client, listing);
        return 0;
    }
    struct Replay {
        Listing end;
        uint64_t generation = 0;
    } replay;
    const auto on_replay = [](void *arg, const lawn_durable_result_t *result) {
        auto *to = static_cast<Replay *>(arg);
        to->generation = result->generation;
        on_end(&to->end, result);
    };
    if (lawn_durable_replay(client.get(), id->c_str(), on_replay, &replay) !=
        LAWN_OK) {
        fail("'" + payload_text(id->data(), id->size()) + "' is no id");
    }
    await_end(client, replay.end);
    print_line(
        settings.json
            ? Json().id(*id).number("generation", replay.generation).str()
            : "replayed " + *id + " " + std::to_string(replay.generation));
    return 0;
}

int command_stats(const Settings &settings, Arguments &arguments)
{
    arguments.finish();
    Client client(settings, impatient());
    const auto stats = query_stats(client);
    if (!stats) {
        fail("interrupted");
    }
    const std::pair<const char *, uint64_t> rows[] = {
        {"shards", stats->shards},
        {"pending", stats->pending},
        {"due", stats->due},
        {"in_flight", stats->in_flight},
        {"dead", stats->dead},
        {"payload_bytes", stats->payload_bytes},
        {"started", stats->started},
        {"stopped", stats->stopped},
        {"fired", stats->fired},
        {"succeeded", stats->succeeded},
        {"failed", stats->failed},
        {"retried", stats->retried},
        {"died", stats->died},
        {"missed", stats->missed},
        {"corrupt", stats->corrupt},
        {"superseded", stats->superseded},
        {"deferred", stats->deferred},
        {"entries", stats->entries},
        {"dropped_letters", stats->dropped_letters},
    };
    Table table;
    Json json;
    for (const auto &[name, value] : rows) {
        table.row(name, value);
        json.number(name, value);
    }
    if (settings.json) {
        print_line(json.str());
    } else {
        table.print();
    }
    return 0;
}

int command_drain(const Settings &settings, Arguments &arguments)
{
    const bool ends = arguments.take_flag("--end");
    const auto timeout = arguments.take_duration("--timeout");
    arguments.finish();
    catch_signals();
    Client client(settings, impatient());
    set_draining(client, !ends);
    if (ends) {
        print_line(settings.json ? Json().boolean("draining", false).str()
                                 : "open");
        return 0;
    }
    const int64_t until_us =
        timeout ? monotonic_now() + static_cast<int64_t>(*timeout) : INT64_MAX;
    Progress progress;
    for (;;) {
        const auto stats = query_stats(client);
        const uint64_t left = stats ? stats->pending + stats->in_flight : 0;
        if (stats && left == 0) {
            break;
        }
        if (!stats || monotonic_now() >= until_us) {
            fail("the namespace takes no new timers, and is not empty yet");
        }
        progress.show("pending " + std::to_string(stats->pending) +
                      ", in flight " + std::to_string(stats->in_flight));
        client.run([] { return false; },
                   std::min(until_us, monotonic_now() + poll_us));
    }
    progress.show("");
    print_line(settings.json ? Json().boolean("drained", true).str()
                             : "drained");
    return 0;
}

int command_acknowledge(const Settings &settings, Arguments &arguments)
{
    arguments.finish();
    Client client(settings, impatient());
    Listing answer;
    await(client, lawn_durable_acknowledge(client.get(), on_end, &answer),
          answer);
    print_line(settings.json ? Json().boolean("acknowledged", true).str()
                             : "acknowledged");
    return 0;
}

} // namespace lawnctl
