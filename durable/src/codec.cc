// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Bodies, ends and verdicts. The replies are in replies.cc.

#include "src/codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lawn::durable
{
namespace
{

// The bits of a body's flags.
enum Flag : unsigned {
    has_token = 1,
    has_retry = 2,
    has_misfire = 4,
    has_every = 8,
    has_then = 16,
    has_cron = 32,
    has_target = 64,
    has_mark = 128,
};

constexpr size_t mark_size = 8;
constexpr unsigned has_answered = 128; // of the misfire policy
constexpr size_t answered_size = 16;
constexpr unsigned most_misfire = 2;
constexpr int64_t least_every_us = 1000;

// Little-endian on all machines.
template <class Number> void put(std::string *text, Number number)
{
    for (size_t i = 0; i < sizeof(number); ++i) {
        *text += static_cast<char>(number >> 8 * i & 0xff);
    }
}

void put_double(std::string *text, int64_t number)
{
    const auto value = static_cast<double>(number);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    put(text, bits);
}

// Reads a text from its front. After one read beyond the end it is not good,
// and all that is read is empty.
class Reader
{
public:
    explicit Reader(std::string_view text) : text_(text)
    {
    }

    bool is_good() const
    {
        return is_good_;
    }

    std::string_view rest() const
    {
        return text_;
    }

    std::string_view take(size_t size)
    {
        if (size > text_.size()) {
            is_good_ = false;
            text_ = {};
            return {};
        }
        const std::string_view taken = text_.substr(0, size);
        text_.remove_prefix(size);
        return taken;
    }

    template <class Number> Number number()
    {
        Number value = 0;
        size_t shift = 0;
        for (const char c : take(sizeof(Number))) {
            value = static_cast<Number>(
                value | static_cast<Number>(static_cast<unsigned char>(c))
                            << shift);
            shift += 8;
        }
        return value;
    }

    double real()
    {
        const auto bits = number<uint64_t>();
        double value = 0;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }

    // An integer of [0, max_time] that is stored as a double.
    int64_t integer()
    {
        const double value = real();
        // Not so for a NaN, either.
        if (!(value >= 0 && value <= static_cast<double>(max_time)) ||
            value != std::floor(value)) {
            is_good_ = false;
            return 0;
        }
        return static_cast<int64_t>(value);
    }

private:
    std::string_view text_;
    bool is_good_ = true;
};

bool is_time(int64_t time)
{
    return time >= 0 && time <= max_time;
}

bool options_are_valid(const Options &o)
{
    return o.misfire <= most_misfire && is_time(o.every_us) &&
           is_time(o.next_us) &&
           (o.every_us == 0 ||
            (o.every_us >= least_every_us && o.cron.empty())) &&
           o.cron.size() <= 255 && o.zone.size() <= 255 &&
           o.target.size() <= max_target;
}

bool read_options(Reader *reader, Options *o)
{
    const unsigned flags = reader->number<uint8_t>();
    if ((flags & has_every) != 0 && (flags & has_cron) != 0) {
        return false;
    }
    if (flags & has_token) {
        o->token = reader->number<uint64_t>();
    }
    if (flags & has_retry) {
        o->max_attempts = reader->number<uint16_t>();
        o->backoff_min_ms = reader->number<uint32_t>();
        o->backoff_max_ms = reader->number<uint32_t>();
    }
    if (flags & has_misfire) {
        const unsigned policy = reader->number<uint8_t>();
        o->misfire = static_cast<uint8_t>(policy % has_answered);
        o->misfire_ms = reader->number<uint32_t>();
        if (policy >= has_answered) {
            reader->take(answered_size); // the store's own business
        }
    }
    if (flags & has_every) {
        o->every_us = reader->integer();
        if (o->every_us < least_every_us) {
            return false;
        }
    }
    if (flags & has_then) {
        reader->integer(); // the store's own business
    }
    if (flags & has_cron) {
        o->next_us = reader->integer();
        o->cron = reader->take(reader->number<uint8_t>());
        o->zone = reader->take(reader->number<uint8_t>());
    }
    if (flags & has_target) {
        o->target = reader->take(reader->number<uint16_t>());
    }
    if (flags & has_mark) {
        reader->take(mark_size); // the store's own business
    }
    return reader->is_good() && o->misfire <= most_misfire &&
           o->target.size() <= max_target;
}

} // namespace

bool id_is_valid(std::string_view id)
{
    for (const char c : id) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte <= ' ' || byte == 0x7f) {
            return false;
        }
    }
    return !id.empty() && id.size() <= max_id;
}

std::string encode_tail(const Options &o, std::string_view payload)
{
    if (!options_are_valid(o) || payload.size() > max_payload) {
        return {};
    }
    const bool retry = o.max_attempts || o.backoff_min_ms || o.backoff_max_ms;
    const bool misfire = o.misfire || o.misfire_ms;
    std::string text;
    text.reserve(64 + o.cron.size() + o.zone.size() + o.target.size() +
                 payload.size());
    text += static_cast<char>(
        (o.token ? has_token : 0U) | (retry ? has_retry : 0U) |
        (misfire ? has_misfire : 0U) | (o.every_us ? has_every : 0U) |
        (o.cron.empty() ? 0U : has_cron) |
        (o.target.empty() ? 0U : has_target));
    if (o.token) {
        put(&text, o.token);
    }
    if (retry) {
        put(&text, o.max_attempts);
        put(&text, o.backoff_min_ms);
        put(&text, o.backoff_max_ms);
    }
    if (misfire) {
        put(&text, o.misfire);
        put(&text, o.misfire_ms);
    }
    if (o.every_us) {
        put_double(&text, o.every_us);
    }
    if (!o.cron.empty()) {
        put_double(&text, o.next_us);
        put(&text, static_cast<uint8_t>(o.cron.size()));
        text += o.cron;
        put(&text, static_cast<uint8_t>(o.zone.size()));
        text += o.zone;
    }
    if (!o.target.empty()) {
        put(&text, static_cast<uint16_t>(o.target.size()));
        text += o.target;
    }
    text += payload;
    return text;
}

bool decode_body(std::string_view text, Body *body)
{
    Reader reader(text);
    Body read;
    read.generation = static_cast<uint64_t>(reader.integer());
    read.due_us = reader.integer();
    read.attempt = reader.number<uint16_t>();
    if (!reader.is_good() || !read_options(&reader, &read.options) ||
        reader.rest().size() > max_payload) {
        return false;
    }
    read.payload = reader.rest();
    read.identity = text.substr(0, identity_size);
    *body = read;
    return true;
}

bool decode_end(std::string_view text, End *end)
{
    Reader reader(text);
    End read;
    read.state = reader.number<uint8_t>();
    read.generation = static_cast<uint64_t>(reader.integer());
    read.due_us = reader.integer();
    read.attempt = reader.number<uint16_t>();
    read.ended_us = reader.integer();
    if (!reader.rest().empty()) {
        read.token = reader.number<uint64_t>();
    }
    if (!reader.rest().empty()) {
        reader.take(answered_size);
    }
    if (!reader.is_good() || !reader.rest().empty() || read.state < 3 ||
        read.state > 6) {
        return false;
    }
    *end = read;
    return true;
}

bool decode_started(std::string_view text, Started *started)
{
    Reader reader(text);
    Started read;
    read.generation = static_cast<uint64_t>(reader.integer());
    read.due_us = reader.integer();
    read.now_us = reader.integer();
    const unsigned repeated = reader.number<uint8_t>();
    read.repeated = repeated != 0;
    read.state = reader.number<uint8_t>();
    if (!reader.is_good() || !reader.rest().empty() || repeated > 1 ||
        read.state > 6) {
        return false;
    }
    *started = read;
    return true;
}

bool decode_fired(std::string_view text, Fired *fired)
{
    Reader reader(text);
    Fired f;
    f.now_us = reader.integer();
    f.cron = reader.number<uint32_t>();
    const unsigned more = reader.number<uint8_t>();
    f.more = more != 0;
    const size_t times = reader.number<uint8_t>();
    const size_t size = reader.rest().size();
    if (!reader.is_good() || more > 1 || times > 64 || size % 8 != 0 ||
        size < 8 * times || size > 8 * (times + 500)) {
        return false;
    }
    for (size_t i = 0; i < times; ++i) {
        const int64_t due = reader.integer();
        if (!reader.is_good() || (i > 0 && due < f.due_us.back())) {
            return false;
        }
        f.due_us.push_back(due);
    }
    // The store belongs to all who can reach it, so these may be anything.
    const auto now = static_cast<double>(f.now_us);
    f.late_us.reserve(reader.rest().size() / 8);
    while (!reader.rest().empty()) {
        const double late = now - reader.real();
        f.late_us.push_back(late > 0 ? static_cast<int64_t>(std::min(now, late))
                                     : 0);
    }
    *fired = std::move(f);
    return true;
}

std::string done_verdict()
{
    return "d";
}

std::string reject_verdict(std::string_view error)
{
    return "f" + std::string(error);
}

std::string retry_verdict(int64_t delay_us, unsigned deliveries,
                          std::string_view error)
{
    std::string verdict =
        "r" + std::to_string(delay_us) + " " + std::to_string(deliveries) + " ";
    verdict += error;
    return verdict;
}

std::string defer_verdict(int64_t delay_us, unsigned deliveries)
{
    return "w" + std::to_string(delay_us) + " " + std::to_string(deliveries);
}

std::string unreadable_identity()
{
    return std::string(identity_size, '\xff'); // its generation is no number
}

} // namespace lawn::durable
