/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn_top - what the engines of running programs do: how late their timers
 * fire, how many timers wait, whether the engines stall, and what their
 * connections have sent again. It shows engines that publish their statistics:
 * the program was started with LAWN_STATS=NAME, or sets a `stats_name`
 * (lawn/engine.h).
 */
#include "finish.h"
#include "report.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { format_table, format_json, format_prometheus } format_t;

typedef struct {
    format_t format;
    bool once;
    bool histogram;
    long interval_msec;
    int64_t pid; /* 0: all */
    int64_t trace_pid;
    const char *trace; /* "": end it; NULL: not asked for */
    bool version;
    bool help;
} options_t;

static void print_help(void)
{
    printf(
        "usage: lawn_top [--once] [--json | --prometheus] [--pid PID]\n"
        "                [--interval SECONDS] [--histogram]\n"
        "       lawn_top --trace PID FILE\n"
        "       lawn_top --end-trace PID\n"
        "\n"
        "Shows the engines of programs that run with LAWN_STATS=NAME.\n"
        "\n"
        "  --once              print one report, and end\n"
        "  --json              as JSON; times in microseconds\n"
        "  --prometheus        as Prometheus reads it; times in seconds\n"
        "  --pid PID           of this process only\n"
        "  --interval SECONDS  between two reports; 1 by default\n"
        "  --histogram         print how late timers have fired, too\n"
        "  --trace PID FILE    have the process record its timers in FILE,\n"
        "                      its next engines in FILE.1, FILE.2, ...\n"
        "  --end-trace PID     end that\n"
        "  --version           print the version\n"
        "  --help              print this\n"
        "\n"
        "Exits with 0, 1 when there is no such engine, the process does not\n"
        "answer or the report cannot be written, or 2 when the command line\n"
        "is wrong.\n");
}

static bool parse_pid(const char *text, int64_t *pid)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    *pid = value;
    if (errno != 0 || end == text || *end != '\0' || value <= 0) {
        fprintf(stderr, "lawn_top: no process id: '%s'\n", text);
        return false;
    }
    return true;
}

static bool parse_interval(const char *text, long *msec)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0.02 && value <= 3600)) {
        fprintf(stderr, "lawn_top: no interval of 0.02 to 3600 s: '%s'\n",
                text);
        return false;
    }
    *msec = (long)(value * 1000);
    return true;
}

/* Returns false if the command line is wrong, and prints why. */
static bool parse(int argc, char **argv, options_t *options)
{
    static const struct option known[] = {
        {"once", no_argument, NULL, 'o'},
        {"json", no_argument, NULL, 'j'},
        {"prometheus", no_argument, NULL, 'm'},
        {"pid", required_argument, NULL, 'p'},
        {"interval", required_argument, NULL, 'i'},
        {"histogram", no_argument, NULL, 'l'},
        {"trace", required_argument, NULL, 't'},
        {"end-trace", required_argument, NULL, 'e'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    bool is_good = true;
    int option;
    while (is_good &&
           (option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
        switch (option) {
        case 'o':
            options->once = true;
            break;
        case 'j':
            options->format = format_json;
            break;
        case 'm':
            options->format = format_prometheus;
            break;
        case 'p':
            is_good = parse_pid(optarg, &options->pid);
            break;
        case 'i':
            is_good = parse_interval(optarg, &options->interval_msec);
            break;
        case 'l':
            options->histogram = true;
            break;
        case 't':
            is_good = parse_pid(optarg, &options->trace_pid);
            options->trace = optind < argc ? argv[optind++] : NULL;
            if (is_good && (!options->trace || *options->trace == '\0')) {
                fprintf(stderr, "lawn_top: --trace needs PID and FILE\n");
                is_good = false;
            }
            break;
        case 'e':
            is_good = parse_pid(optarg, &options->trace_pid);
            options->trace = "";
            break;
        case 'v':
            options->version = true;
            break;
        case 'h':
            options->help = true;
            break;
        default:
            return false; /* getopt_long has said what is wrong */
        }
    }
    if (is_good && optind < argc) {
        fprintf(stderr, "lawn_top: unexpected argument '%s'\n", argv[optind]);
        return false;
    }
    return is_good;
}

static bool open_pages(pages_t *pages, int64_t pid, bool here_only)
{
    if (!pages_open(pages, pid)) {
        fprintf(stderr, "lawn_top: %s: %s\n", LAWN_PAGE_DIRECTORY,
                strerror(errno));
        return false;
    }
    if (here_only) {
        pages_keep_here(pages);
    }
    if (pages->count == 0) {
        fprintf(stderr, "lawn_top: no engine publishes its statistics%s\n",
                pid != 0 ? " in this process" : "");
        pages_close(pages);
        return false;
    }
    return true;
}

/* Writes the path of the file for engine `i`. It is absolute, because the
 * process has its own working directory. */
static bool name_trace(char *name, size_t size, const char *file, size_t i)
{
    char directory[PATH_MAX] = "";
    char number[32] = "";
    if (*file != '/' && !getcwd(directory, sizeof(directory))) {
        return false;
    }
    if (i != 0) {
        snprintf(number, sizeof(number), ".%zu", i);
    }
    const int length = snprintf(name, size, "%s%s%s%s", directory,
                                *file != '/' ? "/" : "", file, number);
    return length > 0 && (size_t)length < size;
}

/* Call it before anything that changes errno. */
static void print_trace_error(const options_t *options, lawn_status_t status)
{
    const char *why = status == LAWN_ERR_TIMED_OUT
                          ? "the engine makes no pass, and does not answer"
                      : status == LAWN_ERR_IO ? strerror(errno)
                                              : lawn_status_string(status);
    if (*options->trace != '\0') {
        fprintf(stderr, "lawn_top: %s: %s\n", options->trace, why);
    } else {
        fprintf(stderr, "lawn_top: process %" PRId64 ": %s\n",
                options->trace_pid, why);
    }
}

static int trace(const options_t *options)
{
    pages_t pages;
    int result = 0;
    /* The process PID of a container is another one. */
    if (!open_pages(&pages, options->trace_pid, true)) {
        return 1;
    }
    for (size_t i = 0; i < pages.count && result == 0; ++i) {
        char name[2 * PATH_MAX] = "";
        char shown[REPORT_NAME_SIZE];
        if (*options->trace != '\0' &&
            !name_trace(name, sizeof(name), options->trace, i)) {
            fprintf(stderr, "lawn_top: %s: %s\n", options->trace,
                    strerror(errno));
            result = 1;
            break;
        }
        const lawn_status_t status = page_trace(&pages.pages[i], name);
        if (status != LAWN_OK) {
            print_trace_error(options, status);
            result = 1;
        } else if (*name != '\0') {
            report_name(&pages.pages[i], shown);
            printf("%s records to %s\n", shown, name);
        }
    }
    pages_close(&pages);
    return finish_output("lawn_top") != EXIT_SUCCESS ? EXIT_FAILURE : result;
}

static void report(const options_t *options, const pages_t *pages,
                   const pages_t *before)
{
    switch (options->format) {
    case format_json:
        report_json(pages);
        break;
    case format_prometheus:
        report_prometheus(pages);
        break;
    case format_table:
        report_table(pages, before);
        for (size_t i = 0; options->histogram && i < pages->count; ++i) {
            report_lateness(&pages->pages[i]);
        }
        break;
    }
}

static void read_anew(pages_t *pages)
{
    pages_ask_backlog(pages);
    pages_await_backlog(pages);
    pages_read(pages);
}

static bool has_same(const pages_t *pages, const pages_t *others)
{
    bool same = pages->count == others->count;
    for (size_t i = 0; same && i < pages->count; ++i) {
        same = strcmp(pages->pages[i].path, others->pages[i].path) == 0;
    }
    return same;
}

static int watch(const options_t *options)
{
    const bool is_screen = isatty(STDOUT_FILENO) != 0 && !options->once &&
                           options->format == format_table;
    pages_t before = {NULL, 0};
    for (;;) {
        pages_t pages;
        if (!open_pages(&pages, options->pid, false)) {
            pages_close(&before);
            return 1;
        }
        read_anew(&pages);
        printf(is_screen ? "\033[H\033[2J" : "");
        report(options, &pages, has_same(&pages, &before) ? &before : NULL);
        const int result = finish_output("lawn_top");
        pages_close(&before);
        before = pages;
        if (result != EXIT_SUCCESS || options->once) {
            pages_close(&before);
            return result;
        }
        sleep_msec(options->interval_msec);
    }
}

int main(int argc, char **argv)
{
    options_t options = {.interval_msec = 1000};
    if (!parse(argc, argv, &options)) {
        return 2;
    }
    if (options.help || options.version) {
        if (options.help) {
            print_help();
        } else {
            printf("lawn_top %s\n", lawn_version());
        }
        return finish_output("lawn_top");
    }
    return options.trace ? trace(&options) : watch(&options);
}
