// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See metrics.h.

#include "metrics.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace lawnd
{

namespace
{

class Writer
{
public:
    explicit Writer(const std::string &name_space)
        : label_("namespace=\"" + name_space + "\"")
    {
    }

    void describe(const std::string &name, const char *type, const char *help)
    {
        text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " +
                 type + "\n";
    }

    void sample(const std::string &name, const std::string &labels,
                const std::string &value)
    {
        text_ += name + "{" + label_ + labels + "} " + value + "\n";
    }

    void gauge(const char *name, const char *help, uint64_t value)
    {
        describe(name, "gauge", help);
        sample(name, "", std::to_string(value));
    }

    void counter(const char *name, const char *help, uint64_t value)
    {
        describe(name, "counter", help);
        sample(name, "", std::to_string(value));
    }

    void histogram(const char *name, const char *help,
                   const lawn_histogram_t &usec);
    void deliveries(const char *name, const char *via,
                    const Deliveries &deliveries);

    const std::string &text() const
    {
        return text_;
    }

private:
    std::string label_;
    std::string text_;
};

std::string seconds(uint64_t usec)
{
    char text[40];
    snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, usec / 1000000,
             usec % 1000000);
    return text;
}

void Writer::histogram(const char *name, const char *help,
                       const lawn_histogram_t &usec)
{
    constexpr uint64_t least = 1 << 6;           // 64 us
    constexpr uint64_t most = uint64_t{1} << 30; // 18 minutes
    describe(name, "histogram", help);
    uint64_t count = 0;
    double sum = 0;
    uint64_t power = least;
    for (unsigned i = 0; i < LAWN_HISTOGRAM_BUCKETS; ++i) {
        const uint64_t bound = lawn_histogram_bound(i);
        count += usec.buckets[i];
        const uint64_t value = bound < usec.max ? bound : usec.max;
        sum += static_cast<double>(value) * 1e-6 *
               static_cast<double>(usec.buckets[i]);
        if (bound == power - 1 && power <= most) {
            sample(std::string(name) + "_bucket",
                   ",le=\"" + seconds(bound) + "\"", std::to_string(count));
            power *= 2;
        }
    }
    char text[40];
    snprintf(text, sizeof(text), "%.6f", sum);
    sample(std::string(name) + "_bucket", ",le=\"+Inf\"",
           std::to_string(count));
    sample(std::string(name) + "_sum", "", text);
    sample(std::string(name) + "_count", "", std::to_string(count));
}

void Writer::deliveries(const char *name, const char *via,
                        const Deliveries &deliveries)
{
    const struct {
        const char *result;
        uint64_t count;
    } rows[] = {{"done", deliveries.done},
                {"retry", deliveries.retried},
                {"deferred", deliveries.deferred},
                {"fail", deliveries.failed}};
    for (const auto &row : rows) {
        sample(name,
               std::string(",via=\"") + via + "\",result=\"" + row.result +
                   "\"",
               std::to_string(row.count));
    }
}

// What the statistics of a shard say, and what their sum over all shards does.
struct Row {
    const char *name; // behind lawn_durable_ or lawn_durable_shard_
    const char *type;
    const char *help;
    uint64_t lawn_durable_stats_t::*field;
};

constexpr Row of_shards[] = {
    {"pending", "gauge", "Timers that are pending.",
     &lawn_durable_stats_t::pending},
    {"due", "gauge", "Timers that are due and have not fired.",
     &lawn_durable_stats_t::due},
    {"in_flight", "gauge", "What has fired and is not answered.",
     &lawn_durable_stats_t::in_flight},
    {"stream_entries", "gauge",
     "Entries of the streams: in flight, or answered and not trimmed yet.",
     &lawn_durable_stats_t::entries},
    {"dead_letters", "gauge", "Dead letters.", &lawn_durable_stats_t::dead},
};

constexpr Row only_totals[] = {
    {"payload_bytes", "gauge",
     "Bytes of payload kept; 0 unless max_payload_bytes was set.",
     &lawn_durable_stats_t::payload_bytes},
    {"started_total", "counter", "Starts.", &lawn_durable_stats_t::started},
    {"stopped_total", "counter", "Timers stopped.",
     &lawn_durable_stats_t::stopped},
    {"fired_total", "counter", "Timers fired.", &lawn_durable_stats_t::fired},
    {"succeeded_total", "counter", "Timers answered with done.",
     &lawn_durable_stats_t::succeeded},
    {"failed_total", "counter", "Timers answered with fail.",
     &lawn_durable_stats_t::failed},
    {"retries_total", "counter", "Timers answered with retry.",
     &lawn_durable_stats_t::retried},
    {"dead_total", "counter", "Timers that have used up their attempts.",
     &lawn_durable_stats_t::died},
    {"missed_total", "counter", "Occurrences skipped by a misfire policy.",
     &lawn_durable_stats_t::missed},
    {"corrupt_total", "counter",
     "Timers dropped because others had written over them.",
     &lawn_durable_stats_t::corrupt},
    {"superseded_total", "counter",
     "Retries of periodic timers not made, as another occurrence came first.",
     &lawn_durable_stats_t::superseded},
    {"deferred_total", "counter",
     "Deliveries put off, which is no attempt of the timer.",
     &lawn_durable_stats_t::deferred},
    {"dropped_letters_total", "counter",
     "Dead letters that went for newer ones.",
     &lawn_durable_stats_t::dropped_letters},
};

void put_total(Writer &out, const Row &row, const std::vector<Shard> &shards)
{
    const std::string name = std::string("lawn_durable_") + row.name;
    uint64_t total = 0;
    for (const Shard &shard : shards) {
        total += shard.stats.*row.field;
    }
    out.describe(name, row.type, row.help);
    out.sample(name, "", std::to_string(total));
}

// Of those that have answered.
void put_shards(Writer &out, const std::vector<Shard> &shards)
{
    const auto label = [](size_t shard) {
        return ",shard=\"" + std::to_string(shard) + "\"";
    };
    const char *const up = "lawn_durable_shard_up";
    out.describe(up, "gauge", "1 if the shard can be read.");
    for (size_t i = 0; i < shards.size(); ++i) {
        out.sample(up, label(i), shards[i].is_up ? "1" : "0");
    }
    for (const Row &row : of_shards) {
        const std::string name = std::string("lawn_durable_shard_") + row.name;
        out.describe(name, row.type, row.help);
        for (size_t i = 0; i < shards.size(); ++i) {
            if (shards[i].is_up) {
                out.sample(name, label(i),
                           std::to_string(shards[i].stats.*row.field));
            }
        }
    }
}

// Totals without some shards would look as if counters had gone back.
void put_store(Writer &out, const std::vector<Shard> &shards)
{
    const bool is_whole = std::all_of(shards.begin(), shards.end(),
                                      [](const Shard &i) { return i.is_up; });
    if (is_whole) {
        out.gauge("lawn_durable_shards", "Shards of the namespace.",
                  shards.size());
        for (const Row &row : of_shards) {
            put_total(out, row, shards);
        }
        for (const Row &row : only_totals) {
            put_total(out, row, shards);
        }
    }
    put_shards(out, shards);
}

} // namespace

std::string format_metrics(const Metrics &metrics)
{
    Writer out(metrics.name_space);
    out.gauge("lawnd_store_up", "1 if the store can be reached.",
              metrics.is_store_up ? 1 : 0);
    out.gauge("lawnd_store_warning",
              "1 if the store may drop timers, or a right is missing: the log "
              "and /healthz say which.",
              metrics.warns ? 1 : 0);
    out.gauge("lawnd_store_lost_timers",
              "1 if timers were lost: the log and /healthz say where.",
              metrics.has_losses ? 1 : 0);
    if (!metrics.shards.empty()) {
        put_store(out, metrics.shards);
    }
    const lawn_durable_pump_stats_t &pump = metrics.pump;
    out.counter("lawnd_fired_total", "Timers that this daemon has fired.",
                pump.fired);
    out.counter("lawnd_store_calls_total", "Calls of the store by the pump.",
                pump.calls);
    out.counter("lawnd_store_errors_total", "Calls of the pump that failed.",
                pump.errors);
    out.counter("lawnd_wakeups_total", "Wake-ups of the pump.", pump.wakeups);
    out.histogram("lawnd_lateness_seconds",
                  "How late timers have fired, by the store's clock; the sum "
                  "is at most 1/8 too high.",
                  pump.lateness_us);
    out.histogram("lawnd_store_round_trip_seconds",
                  "How long calls of the store take; the sum is at most 1/8 "
                  "too high.",
                  pump.round_trip_us);
    const char *const deliveries = "lawnd_deliveries_total";
    out.describe(deliveries, "counter", "Deliveries to targets.");
    out.deliveries(deliveries, "http", metrics.http);
    out.deliveries(deliveries, "stream", metrics.stream);
    out.counter("lawnd_leases_lost_total",
                "Deliveries that the daemon has not answered in their lease.",
                metrics.lost);
    out.gauge("lawnd_http_posting", "Posts that are under way.",
              metrics.posting);
    out.gauge("lawnd_http_waiting", "Posts that wait for their target.",
              metrics.waiting);
    out.gauge("lawnd_http_silent_targets",
              "Targets that had no answer in time to their last post.",
              metrics.silent);
    return out.text();
}

} // namespace lawnd
