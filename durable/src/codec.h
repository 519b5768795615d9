// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What goes to the functions of store/lawn.lua and comes from them, as
// structures. The format is described there. Anybody may write to the store: a
// reply that is not as it should be is refused, whole, and nothing of it is
// used.
//
// Texts of decoded structures point into what they were decoded from.

#ifndef LAWN_SRC_DURABLE_CODEC_H
#define LAWN_SRC_DURABLE_CODEC_H

#include <hiredis/hiredis.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lawn::durable
{

constexpr size_t max_id = 255;
constexpr size_t max_payload = 65536;
constexpr size_t max_target = 2048;
constexpr size_t identity_size = 18;
// Microseconds; the last time that can be stored. It is in the year 2255.
constexpr int64_t max_time = 9000000000000000;

// 1 to 255 bytes, none of them a space or a control character.
bool id_is_valid(std::string_view id);

// How a timer is to be treated. 0 and "" are what is not said.
struct Options {
    uint64_t token = 0;
    uint16_t max_attempts = 0;
    uint32_t backoff_min_ms = 0;
    uint32_t backoff_max_ms = 0;
    uint8_t misfire = 0; // a lawn_durable_misfire_t
    uint32_t misfire_ms = 0;
    int64_t every_us = 0; // at least 1 ms; not with cron
    int64_t next_us = 0;  // of cron: the time after the due time
    std::string_view cron;
    std::string_view zone;
    std::string_view target;
};

// A timer in the store.
struct Body {
    uint64_t generation = 0;
    int64_t due_us = 0;
    unsigned attempt = 0;
    Options options;
    std::string_view payload;
    std::string_view identity; // what an answer names the delivery with
};

// How a timer ended.
struct End {
    int state = 0;
    uint64_t generation = 0;
    int64_t due_us = 0;
    unsigned attempt = 0;
    int64_t ended_us = 0;
    uint64_t token = 0;
};

// The last argument of lawn_start; "" if a text or the payload is too long, or
// a number is not allowed.
std::string encode_tail(const Options &options, std::string_view payload);

bool decode_body(std::string_view text, Body *body);
bool decode_end(std::string_view text, End *end);

// An entry of a stream, from XREADGROUP, XRANGE or lawn_take.
struct Entry {
    std::string_view entry; // its number in the stream
    std::string_view id;
    int64_t fired_us = 0;
    Body body;
    unsigned deliveries = 1; // lawn_take says how many
    std::string_view reason; // of a dead letter
    std::string_view error;  // of a dead letter: the last
};

// Of one element of the reply. If it is no entry of ours, `entry->entry` is its
// number if it has one: answer it with unreadable_identity().
bool decode_entry(const redisReply *reply, Entry *entry);

struct Taken { // lawn_take
    bool more = false;
    const redisReply *entries = nullptr; // a list; of `reply`
};
bool decode(const redisReply *reply, Taken *taken);

// The four arguments of lawn_answer for one delivery are its entry, its id, its
// identity and one of these.
std::string done_verdict();
std::string reject_verdict(std::string_view error);
std::string retry_verdict(int64_t delay_us, unsigned deliveries,
                          std::string_view error);
std::string defer_verdict(int64_t delay_us, unsigned deliveries);
// Acknowledges an entry that cannot be decoded and changes no timer: an
// identity that no delivery has.
std::string unreadable_identity();

enum class Answered {
    too_late = 0,
    taken = 1,
    dead = 2,
    superseded = 3,
    refused = 4
};

struct Results { // lawn_answer
    std::string_view digits;

    size_t size() const
    {
        return digits.size();
    }

    Answered operator[](size_t i) const
    {
        return static_cast<Answered>(digits[i] - '0');
    }
};

struct Opened { // lawn_open
    unsigned shards = 0;
    uint64_t max_pending = 0;
    uint64_t max_bytes = 0;
    uint64_t keep_us = 0;
    uint64_t keep_count = 0;
    std::string_view publish_error; // "": the user may publish
};

struct Prepared { // lawn_prepare
    int64_t born_us = 0;
    int64_t lost_us = 0; // when timers were lost; 0: none, as far as is known
};

struct Started { // lawn_start
    uint64_t generation = 0;
    int64_t due_us = 0;
    bool repeated = false;
    int64_t now_us = 0;
    int state = 0;
};

bool decode_started(std::string_view text, Started *started);

struct Stopped { // lawn_stop
    int state = 0;
    uint64_t generation = 0;
};

struct Updated { // lawn_update
    bool updated = false;
    uint64_t generation = 0;
    int64_t due_us = 0; // if updated
    int64_t now_us = 0; // if updated
    int state = 0;      // if not
};

struct Got { // lawn_get
    int state = 0;
    int64_t now_us = 0;
    Body body; // if pending or delivered
    End end;   // if ended
};

struct Fired { // lawn_fire
    int64_t now_us = 0;
    std::vector<int64_t> late_us; // of each that has fired
    bool more = false;
    unsigned cron = 0;           // timers of which lawn_cron tells
    std::vector<int64_t> due_us; // ascending

    size_t fired() const
    {
        return late_us.size();
    }
};

bool decode_fired(std::string_view text, Fired *fired);

struct Replayed { // lawn_replay
    bool replayed = false;
    uint64_t generation = 0; // if not, and not 0: there is such a timer
    int64_t due_us = 0;
};

struct CronTimer {
    std::string_view id;
    uint64_t generation = 0;
    int64_t after_us = 0;
    std::string_view expression;
    std::string_view zone;
};

struct CronTimers {       // lawn_cron
    unsigned removed = 0; // that were looked at, and need no time
    std::vector<CronTimer> timers;
};

struct Listed { // lawn_list
    struct Timer {
        std::string_view id;
        int state = 0;
        uint64_t generation = 0;
        int64_t due_us = 0; // if it has ended: when
        unsigned attempt = 0;
    };
    std::string_view cursor; // for the next call; "0": that was all
    std::vector<Timer> timers;
};

using Stats = std::vector<std::pair<std::string_view, int64_t>>;

// Each is false if the reply is not one of that function. An error reply never
// is.
bool decode(const redisReply *reply, Opened *opened);
bool decode(const redisReply *reply, Prepared *prepared);
bool decode(const redisReply *reply, Started *started);
bool decode(const redisReply *reply, Stopped *stopped);
bool decode(const redisReply *reply, Updated *updated);
bool decode(const redisReply *reply, Got *got);
bool decode(const redisReply *reply, Fired *fired);
bool decode(const redisReply *reply, Replayed *replayed);
bool decode(const redisReply *reply, Listed *listed);
bool decode(const redisReply *reply, Stats *stats);
bool decode(const redisReply *reply, Results *results);
bool decode(const redisReply *reply, CronTimers *timers);
bool decode(const redisReply *reply, std::vector<std::string_view> *texts);

} // namespace lawn::durable

#endif
