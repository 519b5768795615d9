// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Tables; see report.h.

#include "rto/report.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace bench::rto
{

namespace
{

constexpr int path_width = 16;
constexpr int cell_width = 20;

const char *name_of(Acks acks)
{
    constexpr const char *names[] = {"single", "cumulative", "bare"};
    return names[static_cast<int>(acks)];
}

// Columns stay narrow.
std::string short_text(double value)
{
    char text[32];
    if (value < 99'999.5) {
        snprintf(text, sizeof(text), "%.*f", value < 9.95 ? 1 : 0, value);
    } else {
        snprintf(text, sizeof(text), "%.2g", value);
    }
    return text;
}

std::string cell_text(const Figures &figures)
{
    if (figures.is_stuck) {
        return "stuck";
    }
    std::string text = short_text(figures.spurious) + "/" +
                       short_text(figures.p50) + "(" + short_text(figures.p99) +
                       ")";
    if (figures.asks > 0) {
        text += "+" + short_text(figures.asks);
    }
    return text;
}

} // namespace

std::string text_of(Tick round_trip)
{
    char text[32];
    const bool is_long = round_trip >= millisecond;
    snprintf(text, sizeof(text), "%g%s",
             static_cast<double>(round_trip) / (is_long ? 1e6 : 1e3),
             is_long ? "ms" : "us");
    return text;
}

void print_head(const Options &options, Tick round_trip, uint32_t window)
{
    const Setting &setting = options.plan.setting;
    printf("\nround trip %s, window %u, %s ACKs, loss %g, %u messages, "
           "%u seeds\n%-*s",
           text_of(round_trip).c_str(), window, name_of(setting.acks),
           setting.loss, setting.messages, options.plan.seeds, path_width,
           "path");
    for (const Kind *const kind : options.plan.kinds) {
        printf("%*s", cell_width, kind->name);
    }
    printf("\n");
    fflush(stdout);
}

void print_row(const Cell &cell)
{
    printf("%-*s", path_width, cell.variant->name.c_str());
    for (const Figures &figures : cell.figures) {
        printf("%*s", cell_width, cell_text(figures).c_str());
    }
    if (cell.variant->path->outage > 0) {
        printf("\n%-*s", path_width, "  attempts");
        for (const Figures &figures : cell.figures) {
            printf("%*g", cell_width, figures.attempts);
        }
    }
    printf("\n");
    fflush(stdout);
}

void print_first_head(const Options &options, Tick round_trip, uint32_t window)
{
    printf("\nround trip %s, window %u, %s ACKs, the first loss of %u new "
           "connections\n%-*s%*s%*s%*s\n",
           text_of(round_trip).c_str(), window,
           name_of(options.plan.setting.acks), options.first_losses, path_width,
           "path", cell_width, "knows nothing", cell_width, "inherits",
           cell_width, "and asks");
    fflush(stdout);
}

void print_row(const FirstCell &cell)
{
    printf("%-*s", path_width, cell.variant->name.c_str());
    for (const FirstStall &stall : {cell.alone, cell.inherited, cell.asking}) {
        const std::string text =
            short_text(stall.p50) + "(" + short_text(stall.p99) + ")";
        printf("%*s", cell_width, text.c_str());
    }
    printf("\n");
    fflush(stdout);
}

Csv::Csv(const char *path_)
    : path(path_), file(path ? fopen(path, "w") : nullptr)
{
    if (path && !file) {
        fail();
    }
}

Csv::~Csv()
{
    if (file) {
        fclose(file);
    }
}

void Csv::fail() const
{
    throw std::runtime_error(std::string("cannot write ") + path + ": " +
                             strerror(errno));
}

void Csv::write(const Plan &plan, const std::vector<Cell> &cells)
{
    if (!file) {
        return;
    }
    fprintf(file, "path,rtt_us,window,acks,contender,spurious,spurious_lossy,"
                  "p50,p99,asks,packets,took,attempts,rto\n");
    for (const Cell &cell : cells) {
        for (size_t i = 0; i < cell.figures.size(); ++i) {
            const Figures &of = cell.figures[i];
            fprintf(file,
                    "%s,%g,%u,%s,%s,%.4g,%.4g,%.4g,%.4g,%.4g,%.5g,%.6g,%g,"
                    "%.4g\n",
                    cell.variant->name.c_str(),
                    static_cast<double>(cell.round_trip) / microsecond,
                    cell.window, name_of(plan.setting.acks),
                    plan.kinds[i]->name, of.spurious, of.spurious_lossy, of.p50,
                    of.p99, of.asks, of.packets, of.took, of.attempts, of.rto);
        }
    }
    if (fflush(file) != 0 || ferror(file) != 0) {
        fail();
    }
}

} // namespace bench::rto
