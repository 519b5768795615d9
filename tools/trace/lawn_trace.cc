// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_trace - shows a trace that LAWN_TRACE has recorded: as a page for a
// browser, or as qlog for the tools that show the recovery of QUIC.

#include "page.h"
#include "qlog.h"

#include "../finish.h"

#include <lawn/base.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <stdexcept>

#include <getopt.h>

using namespace trace_file;

namespace
{

struct Options {
    const char *trace = nullptr;
    const char *html = nullptr;
    const char *qlog = nullptr;
    uint64_t connection = 0;
};

void print_help()
{
    printf("usage: lawn_trace FILE [options]\n"
           "Shows a trace that a program has recorded with LAWN_TRACE=FILE;\n"
           "without options, what is in it.\n"
           "  -H, --html PAGE        write a page for a browser, which needs\n"
           "                         nothing else\n"
           "  -q, --qlog FILE        write the recovery of the connections as "
           "qlog\n"
           "                         0.3 (JSON-SEQ), for the tools of QUIC\n"
           "  -c, --connection NAME  in the qlog: only this connection\n"
           "  -v, --version          the version\n"
           "  -h, --help             this text\n"
           "For PAGE and the FILE of --qlog, - is the standard output.\n");
}

std::string title_of(const std::string &path)
{
    const size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

void write_file(const char *path, const std::string &text)
{
    const bool is_output = strcmp(path, "-") == 0;
    FILE *const file = is_output ? stdout : fopen(path, "w");
    if (!file) {
        throw std::runtime_error(std::string(path) + ": " + strerror(errno));
    }
    const bool is_written =
        fwrite(text.data(), 1, text.size(), file) == text.size();
    if (is_output) {
        return; // finish_output() says what is wrong
    }
    const int error = errno;
    if (fclose(file) != 0 || !is_written) {
        throw std::runtime_error(std::string(path) + ": " +
                                 strerror(is_written ? errno : error));
    }
}

void print_summary(const Model &model)
{
    size_t counts[static_cast<size_t>(Mark::count)] = {};
    for (const Connection &connection : model.connections) {
        for (const Marked &mark : connection.marks) {
            ++counts[static_cast<size_t>(mark.mark)];
        }
    }
    printf("%zu events in %.3f s, %zu connections, %zu other timers, "
           "%zu stalls\n",
           model.events, static_cast<double>(model.end) / 1e9,
           model.connections.size(), model.timers.size(), model.stalls.size());
    for (size_t i = 0; i < static_cast<size_t>(Mark::count); ++i) {
        printf("%-9s %zu\n", name_of(static_cast<Mark>(i)), counts[i]);
    }
}

// Returns false if there is no such connection.
bool has_connection(const Model &model, uint64_t name)
{
    return std::any_of(model.connections.begin(), model.connections.end(),
                       [=](const Connection &c) { return c.name == name; });
}

void show(const Options &options)
{
    const Model model = read_model(options.trace);
    if (options.connection != 0 && !has_connection(model, options.connection)) {
        char name[24];
        snprintf(name, sizeof(name), "%llx",
                 static_cast<unsigned long long>(options.connection));
        throw std::runtime_error(std::string(options.trace) +
                                 ": no connection " + name);
    }
    const std::string title = title_of(options.trace);
    if (options.html) {
        write_file(options.html, page_of(model, title));
    }
    if (options.qlog) {
        write_file(options.qlog, qlog_of(model, title, options.connection));
    }
    if (!options.html && !options.qlog) {
        print_summary(model);
    }
}

[[noreturn]] void misuse(const std::string &what)
{
    fprintf(stderr, "lawn_trace: %s (see --help)\n", what.c_str());
    exit(2);
}

uint64_t name_in(const char *text)
{
    uint64_t name = 0;
    const char *const end = text + strlen(text);
    const auto result = std::from_chars(text, end, name, 16);
    if (result.ptr != end || result.ec != std::errc() || name == 0) {
        misuse(std::string("bad connection '") + text + "'");
    }
    return name;
}

// Exits, with a status, after --help and --version.
Options options_of(int argc, char **argv)
{
    static const option known[] = {
        {"html", required_argument, nullptr, 'H'},
        {"qlog", required_argument, nullptr, 'q'},
        {"connection", required_argument, nullptr, 'c'},
        {"version", no_argument, nullptr, 'v'},
        {"help", no_argument, nullptr, 'h'},
        {nullptr, 0, nullptr, 0}};
    Options options;
    int each;
    while ((each = getopt_long(argc, argv, "H:q:c:vh", known, nullptr)) != -1) {
        switch (each) {
        case 'H':
            options.html = optarg;
            break;
        case 'q':
            options.qlog = optarg;
            break;
        case 'c':
            options.connection = name_in(optarg);
            break;
        case 'v':
            printf("lawn_trace %s\n", lawn_version());
            exit(finish_output("lawn_trace"));
        case 'h':
            print_help();
            exit(finish_output("lawn_trace"));
        default:
            exit(2); // getopt_long has said what is wrong
        }
    }
    if (optind == argc) {
        misuse("no FILE");
    }
    options.trace = argv[optind];
    if (optind + 1 < argc) {
        misuse(std::string("unexpected argument '") + argv[optind + 1] + "'");
    }
    if (options.connection != 0 && !options.qlog) {
        misuse("--connection is for --qlog");
    }
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = options_of(argc, argv);
    try {
        show(options);
    } catch (const std::bad_alloc &) {
        fprintf(stderr, "lawn_trace: %s: out of memory\n", options.trace);
        return EXIT_FAILURE;
    } catch (const std::exception &error) {
        fprintf(stderr, "lawn_trace: %s\n", error.what());
        return EXIT_FAILURE;
    }
    return finish_output("lawn_trace");
}
