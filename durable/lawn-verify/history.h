// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What clients and consumers of a namespace saw, one event a line. Every
// process of a run appends to one file; judge.h decides whether the promise of
// lawn/durable.h was kept. All times are microseconds since 1970 by the clock
// of one machine, on which the store runs, too.

#ifndef LAWN_VERIFY_HISTORY_H
#define LAWN_VERIFY_HISTORY_H

#include <cstdint>
#include <string>
#include <vector>

namespace lawn_verify
{

// A request is written before it is sent, with its durability as `word`, and
// again when its answer has come. A request without an answer is one whose
// process was killed.
enum class EventKind {
    start,    // asks for a timer; `due_us` is the delay
    started,  // .. and is answered with a generation and a due time
    stop,     // asks for the end of the timer `id`
    stopped,  // .. and is answered with `word`: stopped, late or unknown
    update,   // asks for another due time of the generation
    updated,  // .. and is answered with the new generation and due time
    unheard,  // nobody knows whether the request was carried out
    refused,  // the request was surely not carried out
    deliver,  // the handler has the timer; `fired_us` by the store's clock
    answer,   // the handler answers with `word`: done, retry or fail
    answered, // .. and the store took it (`word` is "late" if it was too late)
    periodic, // a periodic timer was started; `fired_us` is its period
    // The run did `word` at `time_us` and mended it at `due_us`. If it is
    // word_failover, the store at `fired_us` lost what was done since
    // `time_us`, or some of that.
    fault,
};

constexpr char word_async[] = "async"; // may be lost by a failover
constexpr char word_sure[] = "sure";   // may not
constexpr char word_failover[] = "failover";

struct Event {
    int64_t time_us = 0;
    unsigned process = 0;
    EventKind kind = EventKind::start;
    // Names a start, for as often as it is repeated, in the delivery's payload,
    // too. Stops and updates have numbers of their own.
    uint64_t operation = 0;
    std::string id;
    uint64_t generation = 0;
    int64_t due_us = 0;
    int64_t fired_us = 0;
    unsigned attempt = 0;
    std::string word;
};

// Now, by the clock of this machine.
int64_t history_now();

std::string to_line(const Event &event); // ends with a newline
// False if the line is none.
bool from_line(const std::string &line, Event &event);

// Appends events to a file that many processes write. An event that was written
// outlives the kill of its process.
class HistoryWriter
{
public:
    // Exits the program with one line on stderr if the file cannot be opened.
    HistoryWriter(const std::string &path, unsigned process);
    ~HistoryWriter();

    HistoryWriter(const HistoryWriter &) = delete;
    HistoryWriter &operator=(const HistoryWriter &) = delete;

    // Fills in the time, if it is 0, and the process.
    void write(Event event);

private:
    const int fd_;
    const unsigned process_;
};

// All events of a file in the order of their times. The number of lines that
// are no events is returned.
size_t read_history(const std::string &path, std::vector<Event> &events);

} // namespace lawn_verify

#endif
