// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl start, update, stop and get.

#include "commands.h"
#include "output.h"

#include "src/cron.h"
#include "src/url.h"

#include <cstring>
#include <random>

namespace lawnctl
{

namespace
{

// Exit statuses of `stop`.
constexpr int status_late = 3;
constexpr int status_unknown = 4;

constexpr uint64_t max_attempts = 65535;
constexpr uint64_t max_misfire_us = 49 * uint64_t{86400000000};

// A command answers soon, or says what is wrong.
lawn_durable_params_t impatient()
{
    lawn_durable_params_t params = {};
    params.fail_fast = true;
    return params;
}

int take_durability(Arguments &arguments)
{
    int durability = LAWN_DURABLE_ASYNC;
    std::string error;
    const auto text = arguments.take_text("--durability");
    if (text && !lawn::durable::parse_durability(*text, &durability, &error)) {
        fail("--durability: " + error);
    }
    return durability;
}

std::string take_id(Arguments &arguments)
{
    const std::string id = arguments.take_word("ID");
    std::string error;
    if (!lawn::durable::check_id(id, &error)) {
        fail("the id " + error);
    }
    return id;
}

// Strings that a lawn_durable_start_t points to.
struct Texts {
    std::string id;
    std::string payload;
    std::string target;
    std::string cron;
    std::string zone;
};

// When it is due; false: that is not said. `zone` is that of a date, if it has
// none of its own.
bool take_due(Arguments &arguments, const std::string &zone, int64_t *due_us,
              uint64_t *delay_us)
{
    const auto delay = arguments.take_duration("--in");
    const auto at = arguments.take_text("--at");
    if (delay && at) {
        fail("--in and --at exclude each other");
    }
    *delay_us = delay.value_or(0);
    // 0 stands for none.
    *due_us = at ? std::max<int64_t>(parse_time(*at, zone), 1) : 0;
    return delay || at;
}

std::string take_payload(Arguments &arguments, bool *is_given)
{
    const auto payload = arguments.take_text("--payload");
    *is_given = payload.has_value();
    if (payload && payload->size() > LAWN_DURABLE_MAX_PAYLOAD) {
        fail("the payload has more than 65536 bytes");
    }
    return payload.value_or("");
}

void take_misfire(Arguments &arguments, lawn_durable_start_t &start)
{
    const std::string text = arguments.take_text("--misfire").value_or("fire");
    std::string error;
    if (text == "coalesce") {
        start.misfire = LAWN_DURABLE_COALESCE;
    } else if (text.compare(0, 5, "skip:") == 0) {
        start.misfire = LAWN_DURABLE_SKIP;
        if (!lawn::durable::parse_duration(text.substr(5), &start.misfire_us,
                                           &error)) {
            fail("--misfire: " + error);
        }
        if (start.misfire_us > max_misfire_us) {
            fail("--misfire skips what is later than 49 days at most");
        }
    } else if (text != "fire") {
        fail("--misfire is fire, skip:DURATION or coalesce, not '" + text +
             "'");
    }
}

lawn_durable_start_t take_start(Arguments &arguments, Texts &texts)
{
    lawn_durable_start_t start = {};
    texts.id = take_id(arguments);
    start.id = texts.id.c_str();
    if (const auto cron = arguments.take_text("--cron")) {
        texts.cron = *cron;
        start.cron = texts.cron.c_str();
    }
    texts.zone = arguments.take_text("--zone").value_or("");
    if (!take_due(arguments, start.cron ? "" : texts.zone, &start.due_us,
                  &start.delay_us) &&
        start.cron == nullptr) {
        fail("start needs --in or --at; see --help");
    }
    if (!texts.zone.empty() && start.cron == nullptr && start.due_us == 0) {
        fail("--zone is for --cron, and for dates without an offset");
    }
    if (start.cron != nullptr) {
        start.zone = texts.zone.empty() ? nullptr : texts.zone.c_str();
        std::string error;
        if (!lawn::durable::Cron().parse(texts.cron, texts.zone, &error)) {
            fail("--cron: " + error);
        }
    }
    take_misfire(arguments, start);
    if (const auto every = arguments.take_duration("--every")) {
        if (*every < 10000) {
            fail("--every takes 10ms at least");
        }
        if (start.cron != nullptr) {
            fail("--every and --cron exclude each other");
        }
        start.every_us = *every;
    }
    bool has_payload = false;
    texts.payload = take_payload(arguments, &has_payload);
    start.payload = texts.payload.data();
    start.payload_size = texts.payload.size();
    const auto target = arguments.take_text("--target");
    if (target && *target != "stream") { // that is what it is without a target
        std::string error;
        if (!lawn::durable::check_target(*target, &error)) {
            fail("--target: " + error);
        }
        texts.target = *target;
        start.target = texts.target.c_str();
    }
    start.durability = take_durability(arguments);
    start.max_attempts = static_cast<unsigned>(
        arguments.take_number("--max-attempts", 1, max_attempts).value_or(0));
    return start;
}

} // namespace

int command_start(const Settings &settings, Arguments &arguments)
{
    Texts texts;
    lawn_durable_start_t start = take_start(arguments, texts);
    arguments.finish();
    Client client(settings, impatient());
    lawn_durable_result_t result = {};
    const lawn_status_t status =
        lawn_durable_start_sync(client.get(), &start, &result);
    require_success(status, result.error);
    print_line(settings.json ? Json()
                                   .id(texts.id)
                                   .number("generation", result.generation)
                                   .time("due", result.due_us)
                                   .str()
                             : "started " + texts.id + " " +
                                   std::to_string(result.generation) + " " +
                                   time_text(result.due_us));
    return 0;
}

int command_update(const Settings &settings, Arguments &arguments)
{
    const std::string id = take_id(arguments);
    lawn_durable_update_t update = {};
    update.id = id.c_str();
    const auto generation = arguments.take_number("--generation", 0, INT64_MAX);
    if (!generation) {
        fail("update needs --generation, as start has printed it; see --help");
    }
    update.generation = *generation;
    const std::string zone = arguments.take_text("--zone").value_or("");
    const bool has_due =
        take_due(arguments, zone, &update.due_us, &update.delay_us);
    const std::string payload = take_payload(arguments, &update.set_payload);
    if (!has_due && !update.set_payload) {
        fail("update needs --in, --at or --payload; see --help");
    }
    update.payload = payload.data();
    update.payload_size = payload.size();
    update.durability = take_durability(arguments);
    arguments.finish();
    Client client(settings, impatient());
    lawn_durable_result_t result = {};
    const lawn_status_t status =
        lawn_durable_update_sync(client.get(), &update, &result);
    const bool is_other = status == LAWN_ERR_NO_ELEM;
    const bool is_unknown = is_other && result.state == LAWN_DURABLE_UNKNOWN;
    require_success(is_other ? LAWN_OK : status, result.error);
    const char *const answer = is_unknown ? "unknown"
                               : is_other ? "too late"
                                          : "updated";
    if (settings.json) {
        Json json;
        json.id(id)
            .text("answer", answer)
            .text("state", lawn_durable_state_string(result.state))
            .number("generation", result.generation);
        print_line(is_other ? json.str()
                            : json.time("due", result.due_us).str());
    } else {
        print_line(is_other ? answer
                            : "updated " + id + " " +
                                  std::to_string(result.generation) + " " +
                                  time_text(result.due_us));
    }
    return is_unknown ? status_unknown : is_other ? status_late : 0;
}

int command_stop(const Settings &settings, Arguments &arguments)
{
    const std::string id = take_id(arguments);
    const int durability = take_durability(arguments);
    arguments.finish();
    Client client(settings, impatient());
    lawn_durable_result_t result = {};
    const lawn_status_t status =
        lawn_durable_stop_sync(client.get(), id.c_str(), durability, &result);
    require_success(status, result.error);
    const bool is_stopped = result.state == LAWN_DURABLE_STOPPED;
    const bool is_unknown = result.state == LAWN_DURABLE_UNKNOWN;
    const char *answer = is_stopped   ? "stopped"
                         : is_unknown ? "unknown"
                                      : "too late";
    print_line(settings.json
                   ? Json()
                         .id(id)
                         .text("answer", answer)
                         .text("state", lawn_durable_state_string(result.state))
                         .number("generation", result.generation)
                         .str()
                   : answer);
    return is_stopped ? 0 : is_unknown ? status_unknown : status_late;
}

int command_get(const Settings &settings, Arguments &arguments)
{
    const std::string id = take_id(arguments);
    arguments.finish();
    Client client(settings, impatient());
    lawn_durable_result_t result = {};
    const lawn_status_t status =
        lawn_durable_get_sync(client.get(), id.c_str(), &result);
    require_success(status, result.error);
    const char *state = lawn_durable_state_string(result.state);
    if (!settings.json) {
        print_line(state);
        return 0;
    }
    Json json;
    json.id(id).text("state", state);
    if (result.state != LAWN_DURABLE_UNKNOWN) {
        json.number("generation", result.generation);
    }
    if (result.state == LAWN_DURABLE_PENDING ||
        result.state == LAWN_DURABLE_DELIVERED) {
        json.time("due", result.due_us)
            .number("attempt", result.attempt)
            .payload(result.payload, result.payload_size);
    }
    print_line(json.str());
    return 0;
}

} // namespace lawnctl
