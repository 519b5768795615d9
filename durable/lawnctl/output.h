// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawnctl prints: plain lines, or with --json one object a line.

#ifndef LAWN_LAWNCTL_OUTPUT_H
#define LAWN_LAWNCTL_OUTPUT_H

#include <cstdint>
#include <string>
#include <vector>

namespace lawnctl
{

// Seconds with microseconds.
std::string time_text(int64_t usec);

// On one line: control characters are written as \xHH.
std::string payload_text(const void *payload, size_t size);

// One object, in the order of the calls.
class Json
{
public:
    // Bytes that are no UTF-8 are shown as '?'.
    Json &text(const char *name, const std::string &value);
    // As `id`; if it is no UTF-8, as `id_hex`, too.
    Json &id(const std::string &id);
    Json &number(const char *name, uint64_t value);
    Json &time(const char *name, int64_t usec);
    Json &real(const char *name, double value);
    Json &boolean(const char *name, bool value);
    // As `payload`; as `payload_hex` if it is no UTF-8.
    Json &payload(const void *payload, size_t size);
    std::string str() const;

private:
    void begin(const char *name);

    std::string members_;
};

// Prints the line at once. Ends the program with status 1 if that fails.
void print_line(const std::string &line);

// Two columns: names, and values to the right.
class Table
{
public:
    void row(const std::string &name, const std::string &value);
    void row(const std::string &name, uint64_t value);
    void print() const;

private:
    std::vector<std::pair<std::string, std::string>> rows_;
};

// Shows on a terminal how far long work has come, and wipes it in the end.
class Progress
{
public:
    Progress();
    ~Progress();

    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    void show(const std::string &line);

private:
    const bool is_shown_;
};

} // namespace lawnctl

#endif
