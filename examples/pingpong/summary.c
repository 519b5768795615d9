/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Prints the summary from the counters of the session and of the engine.
 */
#include "summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void line(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void line(const char *name, const char *format, ...)
{
    char value[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof(value), format, arguments);
    va_end(arguments);
    printf("%-30s%s\n", name, value);
}

static void count(const char *name, uint64_t value)
{
    line(name, "%" PRIu64, value);
}

static void milliseconds(const char *name, lawn_time_t ticks)
{
    line(name, "%.3f ms", lawn_time_to_msec(ticks));
}

static void seconds(const char *name, lawn_time_t ticks)
{
    line(name, "%.3f s", lawn_time_to_sec(ticks));
}

static void print_deliveries(const session_stats_t *stats)
{
    if (stats->gaps || stats->repeats || stats->corrupt) {
        line("delivered",
             "%" PRIu64 " of %" PRIu64 ", VIOLATED: %" PRIu64 " gaps, %" PRIu64
             " repeated, %" PRIu64 " corrupt",
             stats->delivered, stats->expected, stats->gaps, stats->repeats,
             stats->corrupt);
    } else {
        line("delivered", "%" PRIu64 " of %" PRIu64 ", in order, exactly once",
             stats->delivered, stats->expected);
    }
}

static void print_deaths(const session_stats_t *stats,
                         const lawn_conn_params_t *timers)
{
    if (stats->dead == 0) {
        return;
    }
    count("dead by keepalive", stats->dead_by[LAWN_CONN_KEEPALIVE]);
    count("dead by peer timeout", stats->dead_by[LAWN_CONN_PEER_TIMEOUT]);
    count("dead by retry exceeded", stats->dead_by[LAWN_CONN_RETRY_EXCEEDED]);
    count("dead by transport", stats->dead_by[0]);
    /* These times count from the last datagram of a connection. */
    seconds("death found max", stats->silence_max);
    if (timers->keepalive_idle) {
        /* Idle + jitter + interval x probes. After a stall, one probe more. */
        unsigned probes = timers->keepalive_probes + (stats->excused != 0);
        seconds("keepalive bound", timers->keepalive_idle +
                                       timers->keepalive_jitter +
                                       timers->keepalive_interval * probes);
    }
}

static void print_times(const session_stats_t *stats,
                        const lawn_engine_t *engine)
{
    lawn_engine_stats_t counted;
    lawn_histogram_t late;
    lawn_engine_query(engine, &counted);
    lawn_engine_query_lateness(engine, &late);
    milliseconds("rtt p50", lawn_histogram_quantile(&stats->rtt, 0.5));
    milliseconds("rtt p99", lawn_histogram_quantile(&stats->rtt, 0.99));
    milliseconds("rtt max", stats->rtt.max);
    milliseconds("lateness p50", lawn_histogram_quantile(&late, 0.5));
    milliseconds("lateness p99", lawn_histogram_quantile(&late, 0.99));
    milliseconds("lateness max", late.max);
    count("early firings", stats->early);
    count("timers fired", counted.fired);
    count("stalls", counted.stalls);
    seconds("worst stall", counted.worst_stall);
}

static void print_sleep(const summary_t *summary)
{
    double elapsed = lawn_time_to_sec(summary->elapsed);
    count("sleeps", summary->sleeps);
    line("cpu time", "%.3f s, %.2f %% of %.3f s", summary->cpu_sec,
         elapsed > 0 ? 100 * summary->cpu_sec / elapsed : 0, elapsed);
}

void summary_print(const summary_t *summary)
{
    const session_config_t *config = session_config(summary->session);
    const session_stats_t *stats = session_stats(summary->session);

    line("mode",
         "%s%s %s, %" PRIu32 " connections, %" PRIu32
         " messages %s, window %" PRIu32 ", %" PRIu32 " bytes",
         summary->mode, config->oneway ? " oneway" : "",
         config->is_client ? "client" : "server", config->connections,
         config->iters, config->oneway ? "one way" : "each way", config->window,
         config->size);
    print_deliveries(stats);
    count("losses injected", stats->dropped);
    count("retransmissions", stats->retransmissions);
    count("peer asked", stats->asked);
    count("by evidence", stats->by_evidence);
    count("spurious", stats->spurious);
    count("back-offs undone", stats->undone);
    count("stalls excused", stats->excused);
    count("duplicates received", stats->duplicates);
    count("malformed ignored", stats->malformed);
    count("foreign ignored", stats->foreign);
    count("probes sent", stats->probes_sent);
    count("probes answered", stats->probes_answered);
    print_times(stats, summary->engine);
    line("dead connections", "%" PRIu32 " of %" PRIu32, stats->dead,
         config->connections);
    print_deaths(stats, &config->timers);
    if (summary->events) {
        print_sleep(summary);
    }
    seconds("elapsed", summary->elapsed);
}
