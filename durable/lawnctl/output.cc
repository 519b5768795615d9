// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawnctl prints; see output.h.

#include "output.h"

#include "arguments.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <unistd.h>

namespace lawnctl
{

namespace
{

constexpr int64_t second_us = 1000000;

std::string hex(unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    return {digits[byte >> 4], digits[byte & 15]};
}

std::string hex(const std::string &bytes)
{
    std::string digits;
    for (const char c : bytes) {
        digits += hex(static_cast<unsigned char>(c));
    }
    return digits;
}

bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f;
}

// How many bytes the character at the front of `text` has; 0 if it is none.
size_t utf8_size(std::string_view text)
{
    const auto lead = static_cast<unsigned char>(text[0]);
    if (lead < 0x80) {
        return 1;
    }
    const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < size) {
        return 0;
    }
    uint32_t code = lead & (0x7fu >> size);
    for (size_t i = 1; i < size; ++i) {
        const auto next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (next & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[size] || code > 0x10ffff || is_surrogate ? 0 : size;
}

bool is_utf8(std::string_view text)
{
    while (!text.empty()) {
        const size_t size = utf8_size(text);
        if (size == 0) {
            return false;
        }
        text.remove_prefix(size);
    }
    return true;
}

std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (is_control(byte)) {
            out += "\\u00" + hex(byte);
        } else {
            out += c;
        }
    }
    return out + '"';
}

} // namespace

std::string time_text(int64_t usec)
{
    char text[40];
    snprintf(text, sizeof(text), "%lld.%06lld",
             static_cast<long long>(usec / second_us),
             static_cast<long long>(usec % second_us));
    return text;
}

std::string payload_text(const void *payload, size_t size)
{
    std::string out;
    const auto *bytes = static_cast<const char *>(payload);
    for (size_t i = 0; i < size; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        if (is_control(byte)) {
            out += "\\x" + hex(byte);
        } else {
            out += bytes[i];
        }
    }
    return out;
}

void Json::begin(const char *name)
{
    members_ += members_.empty() ? "" : ",";
    members_ += quoted(name) + ":";
}

Json &Json::text(const char *name, const std::string &value)
{
    begin(name);
    // Messages are no text in the first place, but bytes.
    if (is_utf8(value)) {
        members_ += quoted(value);
        return *this;
    }
    std::string ascii = value;
    std::replace_if(
        ascii.begin(), ascii.end(),
        [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
    members_ += quoted(ascii);
    return *this;
}

Json &Json::id(const std::string &id)
{
    text("id", id);
    return is_utf8(id) ? *this : text("id_hex", hex(id));
}

Json &Json::number(const char *name, uint64_t value)
{
    begin(name);
    members_ += std::to_string(value);
    return *this;
}

Json &Json::time(const char *name, int64_t usec)
{
    begin(name);
    members_ += time_text(usec);
    return *this;
}

Json &Json::real(const char *name, double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.3f", value);
    begin(name);
    members_ += text;
    return *this;
}

Json &Json::boolean(const char *name, bool value)
{
    begin(name);
    members_ += value ? "true" : "false";
    return *this;
}

Json &Json::payload(const void *payload, size_t size)
{
    const std::string bytes(static_cast<const char *>(payload), size);
    if (is_utf8(bytes)) {
        return text("payload", bytes);
    }
    return text("payload_hex", hex(bytes));
}

std::string Json::str() const
{
    return "{" + members_ + "}";
}

void print_line(const std::string &line)
{
    if (fwrite(line.data(), 1, line.size(), stdout) != line.size() ||
        fputc('\n', stdout) == EOF || fflush(stdout) != 0) {
        fail("cannot write the output");
    }
}

void Table::row(const std::string &name, const std::string &value)
{
    rows_.emplace_back(name, value);
}

void Table::row(const std::string &name, uint64_t value)
{
    row(name, std::to_string(value));
}

void Table::print() const
{
    size_t names = 0;
    size_t values = 0;
    for (const auto &[name, value] : rows_) {
        names = std::max(names, name.size());
        values = std::max(values, value.size());
    }
    for (const auto &[name, value] : rows_) {
        const size_t gap = names - name.size() + 2 + values - value.size();
        print_line(name + std::string(gap, ' ') + value);
    }
}

Progress::Progress() : is_shown_(isatty(STDERR_FILENO) == 1)
{
}

Progress::~Progress()
{
    show("");
}

void Progress::show(const std::string &line)
{
    if (is_shown_) {
        fprintf(stderr, "\r\033[K%s", line.c_str());
    }
}

} // namespace lawnctl
