// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a hostile client may have put into the store: bodies, ends, entries of
// streams and replies of the functions. What is refused leaves nothing behind,
// and what is taken is within its bounds. A body that is taken says the same
// after it was encoded again.

#include "reply_input.h"

#include "src/codec.h"

#include <string>

using namespace lawn::durable;

namespace
{

void check_time(int64_t time)
{
    FUZZ_CHECK(time >= 0 && time <= max_time);
}

void check_body(const Body &body)
{
    FUZZ_CHECK(body.identity.size() == identity_size);
    FUZZ_CHECK(body.payload.size() <= max_payload);
    FUZZ_CHECK(body.options.target.size() <= max_target);
    FUZZ_CHECK(body.options.misfire <= 2);
    FUZZ_CHECK(body.options.every_us == 0 || body.options.cron.empty());
    check_time(body.due_us);
    check_time(static_cast<int64_t>(body.generation));
    check_time(body.options.every_us);
    check_time(body.options.next_us);
}

void check_bytes(const std::string &bytes)
{
    Body body;
    if (decode_body(bytes, &body)) {
        check_body(body);
        const std::string tail = encode_tail(body.options, body.payload);
        FUZZ_CHECK(!tail.empty());
        const std::string again = std::string(body.identity) + tail;
        Body copy;
        FUZZ_CHECK(decode_body(again, &copy));
        FUZZ_CHECK(copy.generation == body.generation &&
                   copy.due_us == body.due_us && copy.attempt == body.attempt);
        FUZZ_CHECK(copy.payload == body.payload);
        FUZZ_CHECK(copy.options.token == body.options.token &&
                   copy.options.target == body.options.target &&
                   copy.options.cron == body.options.cron);
        FUZZ_CHECK(encode_tail(copy.options, copy.payload) == tail);
    } else {
        FUZZ_CHECK(body.identity.empty() && body.payload.empty());
    }
    End end;
    if (decode_end(bytes, &end)) {
        FUZZ_CHECK(end.state >= 3 && end.state <= 6);
        check_time(end.due_us);
        check_time(end.ended_us);
    } else {
        FUZZ_CHECK(end.state == 0);
    }
}

void check_entry(const redisReply *reply)
{
    Entry entry;
    if (decode_entry(reply, &entry)) {
        FUZZ_CHECK(id_is_valid(entry.id));
        check_time(entry.fired_us);
        check_body(entry.body);
    } else {
        FUZZ_CHECK(entry.id.empty() && entry.body.payload.empty());
    }
}

void check_texts(const redisReply *reply)
{
    Fired fired;
    if (decode(reply, &fired)) {
        check_time(fired.now_us);
        for (const int64_t late : fired.late_us) {
            FUZZ_CHECK(late >= 0 && late <= fired.now_us);
        }
        int64_t last = 0;
        for (const int64_t due : fired.due_us) {
            check_time(due);
            FUZZ_CHECK(due >= last); // several may be due at one time
            last = due;
        }
    }
    Results results;
    if (decode(reply, &results)) {
        for (size_t i = 0; i < results.size(); ++i) {
            FUZZ_CHECK(results[i] >= Answered::too_late &&
                       results[i] <= Answered::refused);
        }
    }
}

void check_lists(const redisReply *reply)
{
    CronTimers crons;
    if (decode(reply, &crons)) {
        for (const CronTimer &cron : crons.timers) {
            FUZZ_CHECK(id_is_valid(cron.id));
            check_time(cron.after_us);
        }
    }
    Listed listed;
    if (decode(reply, &listed)) {
        for (const Listed::Timer &timer : listed.timers) {
            FUZZ_CHECK(id_is_valid(timer.id));
            FUZZ_CHECK(timer.state >= 0 && timer.state <= 6);
            check_time(timer.due_us);
        }
    }
    std::vector<std::string_view> texts;
    if (decode(reply, &texts)) {
        FUZZ_CHECK(texts.size() == reply->elements);
    }
    Stats stats;
    if (decode(reply, &stats)) {
        FUZZ_CHECK(2 * stats.size() == reply->elements);
    }
}

void check_records(const redisReply *reply)
{
    Opened opened;
    if (decode(reply, &opened)) {
        FUZZ_CHECK(opened.shards > 0 && opened.shards <= 1024);
    }
    Started started;
    if (decode(reply, &started)) {
        check_time(started.due_us);
        check_time(started.now_us);
    }
    Stopped stopped;
    if (decode(reply, &stopped)) {
        FUZZ_CHECK(stopped.state >= 0 && stopped.state <= 6);
    }
    Updated updated;
    if (decode(reply, &updated)) {
        check_time(updated.due_us);
    }
    Got got;
    if (decode(reply, &got)) {
        FUZZ_CHECK(got.state <= 2 || got.end.state == got.state);
    }
    Replayed replayed;
    if (decode(reply, &replayed)) {
        check_time(replayed.due_us);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz::Input input(data, size);
    const unsigned choice = input.byte();
    if (choice % 4 == 0) {
        size_t length = input.left();
        const uint8_t *const bytes = input.bytes(&length);
        check_bytes(std::string(reinterpret_cast<const char *>(bytes), length));
    } else if (choice % 4 == 1) {
        check_bytes(fuzz::body_of(&input));
    } else {
        fuzz::Replies replies(&input, [](unsigned shard) {
            return "{n:" + std::to_string(shard % 4) + "}:out";
        });
        while (!input.is_empty()) {
            const redisReply *const reply = replies.next();
            check_entry(reply);
            check_texts(reply);
            check_lists(reply);
            check_records(reply);
        }
    }
    return 0;
}
