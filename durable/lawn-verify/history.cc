// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The file of a history; see history.h.

#include "history.h"

#include "common.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace lawn_verify
{

namespace
{

constexpr std::array<const char *, 13> kind_names = {
    "start",    "started",  "stop",    "stopped", "update",
    "updated",  "unheard",  "refused", "deliver", "answer",
    "answered", "periodic", "fault"};

int open_to_append(const std::string &path)
{
    const int fd =
        open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        fail("cannot write " + path + ": " + strerror(errno));
    }
    return fd;
}

} // namespace

int64_t history_now()
{
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch())
        .count();
}

std::string to_line(const Event &event)
{
    std::ostringstream line;
    line << event.time_us << ' ' << event.process << ' '
         << kind_names.at(static_cast<size_t>(event.kind)) << ' '
         << event.operation << ' ' << (event.id.empty() ? "-" : event.id) << ' '
         << event.generation << ' ' << event.due_us << ' ' << event.fired_us
         << ' ' << event.attempt << ' '
         << (event.word.empty() ? "-" : event.word) << '\n';
    return line.str();
}

bool from_line(const std::string &line, Event &event)
{
    std::istringstream fields(line);
    std::string kind;
    std::string more;
    Event read;
    if (!(fields >> read.time_us >> read.process >> kind >> read.operation >>
          read.id >> read.generation >> read.due_us >> read.fired_us >>
          read.attempt >> read.word) ||
        fields >> more) {
        return false;
    }
    const auto *const found =
        std::find(kind_names.begin(), kind_names.end(), kind);
    if (found == kind_names.end()) {
        return false;
    }
    read.kind = static_cast<EventKind>(found - kind_names.begin());
    read.id = read.id == "-" ? "" : read.id;
    read.word = read.word == "-" ? "" : read.word;
    event = read;
    return true;
}

HistoryWriter::HistoryWriter(const std::string &path, unsigned process)
    : fd_(open_to_append(path)), process_(process)
{
}

HistoryWriter::~HistoryWriter()
{
    close(fd_);
}

void HistoryWriter::write(Event event)
{
    event.process = process_;
    if (event.time_us == 0) {
        event.time_us = history_now();
    }
    // One call for one line: the kernel does not mix those of two processes.
    const std::string line = to_line(event);
    if (::write(fd_, line.data(), line.size()) !=
        static_cast<ssize_t>(line.size())) {
        fail(std::string("cannot write the history: ") + strerror(errno));
    }
}

size_t read_history(const std::string &path, std::vector<Event> &events)
{
    std::ifstream file(path);
    std::string line;
    size_t unread = 0;
    for (Event event; std::getline(file, line);) {
        if (from_line(line, event)) {
            events.push_back(event);
        } else {
            ++unread;
        }
    }
    std::stable_sort(
        events.begin(), events.end(),
        [](const Event &a, const Event &b) { return a.time_us < b.time_us; });
    return unread;
}

} // namespace lawn_verify
