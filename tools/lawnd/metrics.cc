// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See metrics.h.

#include "metrics.h"

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

    void describe(const char *name, const char *type, const char *help)
    {
        text_ += std::string("# HELP ") + name + " " + help + "\n# TYPE " +
                 name + " " + type + "\n";
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

void put_store(Writer &out, const lawn_durable_stats_t &store)
{
    out.gauge("lawn_durable_shards", "Shards of the namespace.", store.shards);
    out.gauge("lawn_durable_pending", "Timers that are pending.",
              store.pending);
    out.gauge("lawn_durable_due", "Timers that are due and have not fired.",
              store.due);
    out.gauge("lawn_durable_in_flight",
              "Timers that have fired and are not answered.", store.in_flight);
    out.gauge("lawn_durable_dead_letters", "Dead letters.", store.dead);
    out.gauge("lawn_durable_payload_bytes", "Bytes of payload kept.",
              store.payload_bytes);
    out.counter("lawn_durable_started_total", "Starts.", store.started);
    out.counter("lawn_durable_stopped_total", "Timers stopped.", store.stopped);
    out.counter("lawn_durable_fired_total", "Timers fired.", store.fired);
    out.counter("lawn_durable_succeeded_total", "Timers answered with done.",
                store.succeeded);
    out.counter("lawn_durable_failed_total", "Timers answered with fail.",
                store.failed);
    out.counter("lawn_durable_retries_total", "Timers answered with retry.",
                store.retried);
    out.counter("lawn_durable_dead_total",
                "Timers that have used up their attempts.", store.died);
    out.counter("lawn_durable_missed_total",
                "Occurrences skipped by a misfire policy.", store.missed);
    out.counter("lawn_durable_corrupt_total",
                "Timers dropped because others had written over them.",
                store.corrupt);
    out.counter("lawn_durable_superseded_total",
                "Retries not made, as the next occurrence came first.",
                store.superseded);
}

} // namespace

std::string format_metrics(const Metrics &metrics)
{
    Writer out(metrics.name_space);
    out.gauge("lawnd_store_up", "1 if the store can be reached.",
              metrics.is_store_up ? 1 : 0);
    if (metrics.store) {
        put_store(out, *metrics.store);
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
    out.gauge("lawnd_http_posting", "Posts that are under way.",
              metrics.posting);
    out.gauge("lawnd_http_waiting", "Posts that wait for their target.",
              metrics.waiting);
    return out.text();
}

} // namespace lawnd
