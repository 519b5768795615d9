/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The reports of lawn_top (report.h).
 */
#include "report.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What the connections of an engine count, in the order of the columns. */
typedef struct {
    const char *name;
    const char *title;
    const char *help;
    size_t offset; /* in lawn_engine_stats_t */
} conn_count_t;

static const conn_count_t conn_counts[] = {
    {"retransmissions", "RESENT", "Retransmissions.",
     offsetof(lawn_engine_stats_t, conn_retransmissions)},
    {"by_evidence", "BY EVIDENCE", "Retransmissions by evidence of a loss.",
     offsetof(lawn_engine_stats_t, conn_by_evidence)},
    {"spurious", "SPURIOUS", "Signs that a retransmission was not needed.",
     offsetof(lawn_engine_stats_t, conn_spurious)},
    {"undone", "UNDONE", "Back-offs that were taken back.",
     offsetof(lawn_engine_stats_t, conn_undone)},
    {"asked", "ASKED", "Times that a peer was asked what it has received.",
     offsetof(lawn_engine_stats_t, conn_asked)},
    {"excused", "EXCUSED", "Stalls of the program that were excused.",
     offsetof(lawn_engine_stats_t, conn_excused)},
    {"probes", "PROBES", "Keepalive probes.",
     offsetof(lawn_engine_stats_t, conn_probes)},
    {"dead", "DEAD", "Peers that were dead.",
     offsetof(lawn_engine_stats_t, conn_dead)},
};

#define CONN_COUNTS (sizeof(conn_counts) / sizeof(conn_counts[0]))

static uint64_t conn_count(const page_t *page, size_t i)
{
    uint64_t count;
    memcpy(&count, (const char *)&page->state.stats + conn_counts[i].offset,
           sizeof(count));
    return count;
}

static double sec_of(const page_t *page, lawn_time_t ticks)
{
    return (double)ticks / page->shared->owner.ticks_per_sec;
}

static double usec_of(const page_t *page, lawn_time_t ticks)
{
    return sec_of(page, ticks) * 1e6;
}

static double late_usec(const page_t *page, double q)
{
    return usec_of(page, lawn_histogram_quantile(&page->state.late, q));
}

/* ---- For people */

void report_name(const page_t *page, char shown[REPORT_NAME_SIZE])
{
    const char *name = page->shared->owner.name;
    const size_t size = sizeof(page->shared->owner.name);
    unsigned char before = 0;
    *shown = '\0';
    for (size_t i = 0; i < size && name[i] != '\0'; ++i) {
        const unsigned char byte = (unsigned char)name[i];
        /* In UTF-8, C2 80 to C2 9F are control characters, too. */
        if (byte < ' ' || byte == 127 ||
            (before == 0xc2 && byte >= 0x80 && byte < 0xa0)) {
            shown += sprintf(shown, "\\x%02x", byte);
        } else {
            shown += sprintf(shown, byte == '\\' ? "\\%c" : "%c", byte);
        }
        before = byte;
    }
}

/* Writes a time in few characters, with a unit that suits it. */
static const char *short_time(char text[16], double usec)
{
    static const char *const units[] = {"us", "ms", "s"};
    unsigned unit = 0;
    while (usec >= 1000 && unit < 2) {
        usec /= 1000;
        ++unit;
    }
    snprintf(text, 16, usec < 10 ? "%.1f%s" : "%.0f%s", usec, units[unit]);
    return text;
}

static void print_rate(const page_t *page, const page_t *before, uint64_t now,
                       uint64_t then)
{
    const uint64_t took =
        before ? page->state.written - before->state.written : 0;
    if (took == 0 || now < then) {
        printf(" %10s", "-");
    } else {
        printf(" %10.0f", (double)(now - then) * 1e9 / (double)took);
    }
}

static void print_late(const page_t *page, double q)
{
    char text[16];
    printf(" %8s", short_time(text, late_usec(page, q)));
}

static void print_row(const page_t *page, const page_t *before)
{
    const lawn_engine_stats_t *stats = &page->state.stats;
    const lawn_engine_stats_t *old = before ? &before->state.stats : stats;
    char text[16];
    char name[REPORT_NAME_SIZE];
    report_name(page, name);
    printf("%8" PRId64 " %-16.16s %-6s", page->shared->owner.pid, name,
           page->state.asleep != 0 ? "sleeps" : "polls");
    print_rate(page, before, stats->passes, old->passes);
    print_rate(page, before, stats->fired, old->fired);
    printf(" %9" PRIu64 " %9" PRIu64, page->state.running, page->state.backlog);
    print_late(page, 0.5);
    print_late(page, 0.99);
    print_late(page, 0.999);
    print_late(page, 1);
    printf(" %9" PRIu64 " %7" PRIu64, stats->budget_ends, stats->stalls);
    printf(" %8s\n", short_time(text, usec_of(page, stats->worst_pass)));
}

static bool has_conn_counts(const page_t *page)
{
    bool has_any = false;
    for (size_t i = 0; i < CONN_COUNTS; ++i) {
        has_any |= conn_count(page, i) != 0;
    }
    return has_any;
}

static void print_conn_titles(void)
{
    printf("\n%8s %-16s %10s", "PID", "CONNECTIONS OF", "RESENT/s");
    for (size_t i = 0; i < CONN_COUNTS; ++i) {
        printf(" %11s", conn_counts[i].title);
    }
    printf("\n");
}

static void print_conn_row(const page_t *page, const page_t *before)
{
    const uint64_t now = page->state.stats.conn_retransmissions;
    char name[REPORT_NAME_SIZE];
    report_name(page, name);
    printf("%8" PRId64 " %-16.16s", page->shared->owner.pid, name);
    print_rate(page, before, now,
               before ? before->state.stats.conn_retransmissions : now);
    for (size_t i = 0; i < CONN_COUNTS; ++i) {
        printf(" %11" PRIu64, conn_count(page, i));
    }
    printf("\n");
}

/* Only engines whose connections have counted anything have a line. */
static void print_conns(const pages_t *pages, const pages_t *before)
{
    bool has_titles = false;
    for (size_t i = 0; i < pages->count; ++i) {
        if (has_conn_counts(&pages->pages[i])) {
            if (!has_titles) {
                print_conn_titles();
                has_titles = true;
            }
            print_conn_row(&pages->pages[i], before ? &before->pages[i] : NULL);
        }
    }
}

void report_table(const pages_t *pages, const pages_t *before)
{
    printf("%8s %-16s %-6s %10s %10s %9s %9s %8s %8s %8s %8s %9s %7s %8s\n",
           "PID", "NAME", "STATE", "PASSES/s", "FIRED/s", "RUNNING", "BACKLOG",
           "LATE p50", "p99", "p99.9", "max", "AT BUDGET", "STALLS",
           "MAX PASS");
    for (size_t i = 0; i < pages->count; ++i) {
        print_row(&pages->pages[i], before ? &before->pages[i] : NULL);
    }
    print_conns(pages, before);
}

void report_lateness(const page_t *page)
{
    const lawn_histogram_t *late = &page->state.late;
    uint64_t counts[62] = {0}; /* 8 buckets each: below 8, 16, 32, ... */
    uint64_t most = 0;
    for (unsigned i = 0; i < LAWN_HISTOGRAM_BUCKETS; ++i) {
        counts[i / 8] += late->buckets[i];
        most = counts[i / 8] > most ? counts[i / 8] : most;
    }
    char name[REPORT_NAME_SIZE];
    report_name(page, name);
    printf("\nlateness of %s (%" PRId64 ")\n", name, page->shared->owner.pid);
    for (unsigned i = 0; i < 62; ++i) {
        if (counts[i] != 0) {
            char text[16];
            const double share = (double)counts[i] / (double)most;
            const lawn_time_t bound = lawn_histogram_bound(8 * i + 7);
            printf("  up to %8s %12" PRIu64 " %.*s\n",
                   short_time(text, usec_of(page, bound)), counts[i],
                   1 + (int)(share * 39),
                   "########################################");
        }
    }
}

/* ---- For programs */

/* Returns the bytes of the character of UTF-8 that `text` begins with, or 0 if
 * it begins with none. Table 3-7 of the Unicode Standard has the limits of the
 * second byte. */
static size_t utf8_length(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    unsigned char least = 0x80;
    unsigned char most = 0xbf;
    size_t length = 4;
    if (byte[0] < 0x80) {
        return 1;
    }
    if (byte[0] < 0xc2 || byte[0] > 0xf4) {
        return 0;
    }
    if (byte[0] < 0xe0) {
        length = 2;
    } else if (byte[0] < 0xf0) {
        length = 3;
        least = byte[0] == 0xe0 ? 0xa0 : least;
        most = byte[0] == 0xed ? 0x9f : most; /* no surrogates */
    } else {
        least = byte[0] == 0xf0 ? 0x90 : least;
        most = byte[0] == 0xf4 ? 0x8f : most;
    }
    for (size_t i = 1; i < length; ++i) {
        if (byte[i] < least || byte[i] > most) {
            return 0; /* also at the end of the text */
        }
        least = 0x80;
        most = 0xbf;
    }
    return length;
}

/* Prints a name, which may contain anything. Quotes and backslashes are
 * escaped. Control characters are escaped by "\\u00.." in JSON and left out
 * otherwise. Bytes that are not of UTF-8 become U+FFFD, because a reader may
 * refuse the whole report for them: a name may be cut within a character. */
static void print_text(const char *text, bool is_json)
{
    size_t length;
    for (const char *c = text; *c != '\0'; c += length > 0 ? length : 1) {
        length = utf8_length(c);
        if (length == 0) {
            printf("\xef\xbf\xbd");
        } else if (*c == '"' || *c == '\\') {
            printf("\\%c", *c);
        } else if ((unsigned char)*c >= ' ' && *c != 127) {
            printf("%.*s", (int)length, c);
        } else if (is_json) {
            printf("\\u%04x", (unsigned)(unsigned char)*c);
        }
    }
}

static void print_buckets(const page_t *page)
{
    const char *separator = "";
    printf("\"lateness_us\": [");
    for (unsigned i = 0; i < LAWN_HISTOGRAM_BUCKETS; ++i) {
        if (page->state.late.buckets[i] != 0) {
            printf("%s[%.3f, %" PRIu64 "]", separator,
                   usec_of(page, lawn_histogram_bound(i)),
                   page->state.late.buckets[i]);
            separator = ", ";
        }
    }
    printf("]}");
}

static void print_object(const page_t *page)
{
    const lawn_engine_stats_t *stats = &page->state.stats;
    printf("{\"pid\": %" PRId64 ", \"name\": \"", page->shared->owner.pid);
    print_text(page->shared->owner.name, true);
    printf("\", \"asleep\": %s, \"age_ms\": %.1f,\n  ",
           page->state.asleep != 0 ? "true" : "false",
           (double)page_age(page) / 1e6);
    printf("\"passes\": %" PRIu64 ", \"fired\": %" PRIu64
           ", \"moved\": %" PRIu64 ", \"running\": %" PRIu64
           ", \"backlog\": %" PRIu64 ",\n  ",
           stats->passes, stats->fired, stats->moved, page->state.running,
           page->state.backlog);
    printf("\"budget\": %" PRIu64 ", \"budget_ends\": %" PRIu64
           ", \"stalls\": %" PRIu64 ", \"clock_steps\": %" PRIu64 ",\n  ",
           page->shared->owner.budget, stats->budget_ends, stats->stalls,
           stats->clock_steps);
    printf("\"worst_stall_us\": %.3f, \"worst_pass_us\": %.3f, "
           "\"worst_poll_us\": %.3f, \"worst_poll_fn\": \"0x%" PRIx64
           "\", \"worst_poll_arg\": \"0x%" PRIx64 "\",\n  ",
           usec_of(page, stats->worst_stall), usec_of(page, stats->worst_pass),
           usec_of(page, stats->worst_poll), stats->worst_poll_fn,
           stats->worst_poll_arg);
    printf("\"late_us\": {\"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f, "
           "\"max\": %.3f},\n  ",
           late_usec(page, 0.5), late_usec(page, 0.99), late_usec(page, 0.999),
           late_usec(page, 1));
    for (size_t i = 0; i < CONN_COUNTS; ++i) {
        printf("\"conn_%s\": %" PRIu64 ",%s", conn_counts[i].name,
               conn_count(page, i), i % 4 == 3 ? "\n  " : " ");
    }
    print_buckets(page);
}

void report_json(const pages_t *pages)
{
    printf("[");
    for (size_t i = 0; i < pages->count; ++i) {
        printf(i != 0 ? ",\n " : "");
        print_object(&pages->pages[i]);
    }
    printf("]\n");
}

static void print_labels(const page_t *page)
{
    const char *number = strrchr(page->path, '.');
    printf("{pid=\"%" PRId64 "\",engine=\"%s\",name=\"",
           page->shared->owner.pid, number + 1);
    print_text(page->shared->owner.name, false);
    printf("\"");
}

typedef struct {
    const char *name;
    const char *type;
    const char *help;
    double (*value)(const page_t *page);
} metric_t;

static double passes(const page_t *page)
{
    return (double)page->state.stats.passes;
}

static double fired(const page_t *page)
{
    return (double)page->state.stats.fired;
}

static double moved(const page_t *page)
{
    return (double)page->state.stats.moved;
}

static double budget_ends(const page_t *page)
{
    return (double)page->state.stats.budget_ends;
}

static double stalls(const page_t *page)
{
    return (double)page->state.stats.stalls;
}

static double running(const page_t *page)
{
    return (double)page->state.running;
}

static double backlog(const page_t *page)
{
    return (double)page->state.backlog;
}

static double asleep(const page_t *page)
{
    return (double)page->state.asleep;
}

static double worst_pass(const page_t *page)
{
    return sec_of(page, page->state.stats.worst_pass);
}

static double age(const page_t *page)
{
    return (double)page_age(page) / 1e9;
}

static const metric_t metrics[] = {
    {"passes_total", "counter", "Passes of the engine.", passes},
    {"fired_total", "counter", "Timers fired.", fired},
    {"moved_total", "counter", "Timers touched that did not fire.", moved},
    {"budget_ends_total", "counter", "Passes that left over timers to touch.",
     budget_ends},
    {"stalls_total", "counter", "Passes that came late.", stalls},
    {"running", "gauge", "Timers that run.", running},
    {"backlog", "gauge", "Timers that are due and have not fired.", backlog},
    {"asleep", "gauge", "1 while the engine sleeps.", asleep},
    {"worst_pass_seconds", "gauge", "Longest time between two passes.",
     worst_pass},
    {"age_seconds", "gauge", "Time since the engine has told.", age},
};

static void print_metric(const pages_t *pages, const metric_t *metric)
{
    printf("# HELP lawn_%s %s\n# TYPE lawn_%s %s\n", metric->name, metric->help,
           metric->name, metric->type);
    for (size_t i = 0; i < pages->count; ++i) {
        printf("lawn_%s", metric->name);
        print_labels(&pages->pages[i]);
        printf("} %.17g\n", metric->value(&pages->pages[i]));
    }
}

static void print_conn_metric(const pages_t *pages, size_t i)
{
    const char *name = conn_counts[i].name;
    printf("# HELP lawn_conn_%s_total %s\n# TYPE lawn_conn_%s_total counter\n",
           name, conn_counts[i].help, name);
    for (size_t j = 0; j < pages->count; ++j) {
        printf("lawn_conn_%s_total", name);
        print_labels(&pages->pages[j]);
        printf("} %" PRIu64 "\n", conn_count(&pages->pages[j], i));
    }
}

/* Prints a bucket for each power of two. The sum is computed from the bounds of
 * the buckets. */
static void print_histogram(const page_t *page)
{
    const lawn_histogram_t *late = &page->state.late;
    uint64_t below = 0;
    double sum = 0;
    for (unsigned i = 0; i < LAWN_HISTOGRAM_BUCKETS; ++i) {
        const lawn_time_t bound = lawn_histogram_bound(i);
        below += late->buckets[i];
        sum += (double)late->buckets[i] * sec_of(page, bound);
        if (i % 8 == 7 && i + 1 < LAWN_HISTOGRAM_BUCKETS) {
            printf("lawn_lateness_seconds_bucket");
            print_labels(page);
            printf(",le=\"%.9g\"} %" PRIu64 "\n", sec_of(page, bound), below);
        }
    }
    printf("lawn_lateness_seconds_bucket");
    print_labels(page);
    printf(",le=\"+Inf\"} %" PRIu64 "\nlawn_lateness_seconds_sum", below);
    print_labels(page);
    printf("} %.9g\nlawn_lateness_seconds_count", sum);
    print_labels(page);
    printf("} %" PRIu64 "\n", below);
}

void report_prometheus(const pages_t *pages)
{
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); ++i) {
        print_metric(pages, &metrics[i]);
    }
    for (size_t i = 0; i < CONN_COUNTS; ++i) {
        print_conn_metric(pages, i);
    }
    printf("# HELP lawn_lateness_seconds How late timers have fired; the sum "
           "is at most 1/8 too high.\n"
           "# TYPE lawn_lateness_seconds histogram\n");
    for (size_t i = 0; i < pages->count; ++i) {
        print_histogram(&pages->pages[i]);
    }
}
