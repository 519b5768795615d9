// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Bodies there and back, and replies that are not what they should be.

#include "reply_tree.h"

#include "src/codec.h"

#include <gtest/gtest.h>

#include <cstring>

namespace
{

using namespace lawn::durable;
using lawn_test::Reply;
using lawn_test::Tree;

Reply number(long long value)
{
    Reply reply;
    reply.type = Reply::number;
    reply.integer = value;
    return reply;
}

Reply text(const std::string &value)
{
    Reply reply;
    reply.type = Reply::text;
    reply.string = value;
    return reply;
}

Reply list(std::vector<Reply> elements)
{
    Reply reply;
    reply.type = Reply::list;
    reply.elements = std::move(elements);
    return reply;
}

Options all_options()
{
    Options o;
    o.token = 0x0123456789abcdef;
    o.max_attempts = 65535;
    o.backoff_min_ms = 1;
    o.backoff_max_ms = UINT32_MAX;
    o.misfire = 2;
    o.misfire_ms = 77;
    o.next_us = max_time;
    o.cron = "* * * * *";
    o.zone = "Europe/Berlin";
    o.target = "http://x/";
    return o;
}

// Generation 3, due at 5, attempt 7.
std::string body_of(const Options &options, const std::string &payload)
{
    return std::string("\0\0\0\0\0\0\x08\x40\0\0\0\0\0\0\x14\x40\7\0", 18) +
           encode_tail(options, payload);
}

TEST(DurableCodec, ABodyThereAndBack)
{
    const Options o = all_options();
    const std::string encoded = body_of(o, "payload");
    Body body;
    ASSERT_TRUE(decode_body(encoded, &body));
    EXPECT_EQ(body.generation, 3U);
    EXPECT_EQ(body.due_us, 5);
    EXPECT_EQ(body.attempt, 7U);
    EXPECT_EQ(body.payload, "payload");
    EXPECT_EQ(body.identity, encoded.substr(0, identity_size));
    EXPECT_EQ(body.options.token, o.token);
    EXPECT_EQ(body.options.max_attempts, o.max_attempts);
    EXPECT_EQ(body.options.backoff_min_ms, o.backoff_min_ms);
    EXPECT_EQ(body.options.backoff_max_ms, o.backoff_max_ms);
    EXPECT_EQ(body.options.misfire, o.misfire);
    EXPECT_EQ(body.options.misfire_ms, o.misfire_ms);
    EXPECT_EQ(body.options.next_us, o.next_us);
    EXPECT_EQ(body.options.cron, o.cron);
    EXPECT_EQ(body.options.zone, o.zone);
    EXPECT_EQ(body.options.target, o.target);
    for (size_t size = 0; size + sizeof("payload") <= encoded.size(); ++size) {
        EXPECT_FALSE(decode_body(encoded.substr(0, size), &body)) << size;
    }
}

TEST(DurableCodec, OptionsThatAreNotAllowed)
{
    Options o = all_options();
    o.every_us = 1000;
    EXPECT_EQ(encode_tail(o, ""), ""); // with cron
    o = Options();
    o.every_us = 999;
    EXPECT_EQ(encode_tail(o, ""), "");
    o = Options();
    o.misfire = 3;
    EXPECT_EQ(encode_tail(o, ""), "");
    o = Options();
    const std::string long_target(max_target + 1, 'x');
    o.target = long_target;
    EXPECT_EQ(encode_tail(o, ""), "");
    EXPECT_EQ(encode_tail({}, std::string(max_payload + 1, 'x')), "");
    EXPECT_EQ(encode_tail({}, std::string(max_payload, 'x')).size(),
              max_payload + 1);
    EXPECT_EQ(encode_tail({}, ""), std::string(1, '\0'));
}

TEST(DurableCodec, EntriesOfStreams)
{
    const std::string fired("\0\0\0\0\0\0\x18\x40", 8); // 6
    const std::string body = fired + body_of({}, "x");
    const auto entry_of = [](const std::vector<Reply> &fields) {
        return list({text("1-2"), list(fields)});
    };
    Entry entry;
    const Tree good(entry_of({text("i"), text("id"), text("b"), text(body)}));
    ASSERT_TRUE(decode_entry(good.get(), &entry));
    EXPECT_EQ(entry.entry, "1-2");
    EXPECT_EQ(entry.id, "id");
    EXPECT_EQ(entry.fired_us, 6);
    EXPECT_EQ(entry.body.payload, "x");
    EXPECT_EQ(entry.deliveries, 1U);
    const Reply fields = list({text("i"), text("id"), text("b"), text(body)});
    const Tree taken(list({text("1-2"), number(7), fields}));
    ASSERT_TRUE(decode_entry(taken.get(), &entry));
    EXPECT_EQ(entry.deliveries, 7U);
    for (const Reply &reply :
         {Reply(), number(1), text("x"), list({}), list({text("1-2")}),
          list({number(1), list({})}), list({text("1-2"), text("x")}),
          list({text("1-2"), number(-1), fields}),
          list({text("1-2"), number(0), fields}), entry_of({}),
          entry_of({text("i"), text("id")}),
          entry_of({text("i"), text("a b"), text("b"), text(body)}),
          entry_of({text("i"), number(1), text("b"), text(body)}),
          entry_of({text("i"), text("id"), text("b"), text("short")}),
          entry_of({text("i"), text("id"), text("b"),
                    text(std::string(40, '\xff'))})}) {
        const Tree tree(reply);
        EXPECT_FALSE(decode_entry(tree.get(), &entry)) << to_string(reply);
    }
}

// A double as the store has it.
std::string double_of(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    std::string text;
    for (unsigned i = 0; i < 8; ++i) {
        text += static_cast<char>(bits >> 8 * i & 0xff);
    }
    return text;
}

// The reply of lawn_fire at `now`: times to come, and those of what has fired.
std::string fired_of(double now, const std::vector<double> &times,
                     const std::vector<double> &fired)
{
    std::string text = double_of(now) + std::string(4, '\0') + '\1' +
                       static_cast<char>(times.size());
    for (const std::vector<double> *const list : {&times, &fired}) {
        for (const double time : *list) {
            text += double_of(time);
        }
    }
    return text;
}

template <class Decoded> bool is_reply(const Reply &reply)
{
    Decoded decoded = {};
    const Tree tree(reply);
    return decode(tree.get(), &decoded);
}

// Refuses everything but `good`, changed in one place.
template <class Decoded> void expect_strict(const Reply &good)
{
    Decoded decoded = {};
    const Tree tree(good);
    EXPECT_TRUE(decode(tree.get(), &decoded)) << to_string(good);
    EXPECT_FALSE(decode(nullptr, &decoded));
    Reply error;
    error.type = Reply::error;
    for (const Reply &other : {Reply(), error, number(1), text("x")}) {
        const Tree wrong(other);
        EXPECT_FALSE(decode(wrong.get(), &decoded)) << to_string(other);
    }
    if (good.type == Reply::list) {
        Reply longer = good;
        longer.elements.push_back(number(1));
        const Tree more(longer);
        EXPECT_FALSE(decode(more.get(), &decoded)) << to_string(longer);
    }
    for (size_t i = 0; i < good.size(); ++i) {
        Reply shorter = good;
        shorter.elements.resize(i);
        const Tree cut(shorter);
        EXPECT_FALSE(decode(cut.get(), &decoded)) << to_string(shorter);
        for (const Reply &other : {Reply(), error, number(-1)}) {
            Reply changed = good;
            changed.elements[i] = other;
            const Tree wrong(changed);
            EXPECT_FALSE(decode(wrong.get(), &decoded)) << to_string(changed);
        }
    }
}

TEST(DurableCodec, TheReplyToAStart)
{
    const auto packed = [](double generation, double due, double now,
                           char repeated, char state) {
        std::string all(3 * sizeof(double), '\0');
        memcpy(&all[0], &generation, sizeof(double));
        memcpy(&all[8], &due, sizeof(double));
        memcpy(&all[16], &now, sizeof(double));
        return all + repeated + state;
    };
    const std::string good = packed(7, 1e15, 5, 1, 2);
    Started started;
    const Tree tree(text(good));
    ASSERT_TRUE(decode(tree.get(), &started));
    EXPECT_EQ(started.generation, 7U);
    EXPECT_EQ(started.due_us, 1000000000000000);
    EXPECT_EQ(started.now_us, 5);
    EXPECT_TRUE(started.repeated);
    EXPECT_EQ(started.state, 2);
    for (const std::string &bad :
         {good.substr(1), good + '\0', std::string(), packed(7, 1e15, 5, 2, 2),
          packed(7, 1e15, 5, 1, 7), packed(-1, 1e15, 5, 1, 2),
          packed(7, 1e16, 5, 1, 2), packed(7, 1e15, 0.5, 1, 2)}) {
        const Tree wrong(text(bad));
        EXPECT_FALSE(decode(wrong.get(), &started)) << bad.size();
    }
    const Tree wrong(list({number(1), number(2), number(0), number(3)}));
    EXPECT_FALSE(decode(wrong.get(), &started));
}

TEST(DurableCodec, RepliesThatAreNotWhatTheyShouldBe)
{
    expect_strict<Opened>(list(
        {number(8), number(0), number(0), number(1), number(1), text("")}));
    expect_strict<Taken>(list({number(1), list({number(2)})}));
    expect_strict<Stopped>(list({number(5), number(1)}));
    expect_strict<Updated>(list({number(0), number(2), number(1)}));
    expect_strict<Updated>(list({number(1), number(2), number(3), number(4)}));
    expect_strict<Got>(list({number(0), number(2), text("")}));
    expect_strict<Got>(list({number(1), number(2), text(body_of({}, "x"))}));
    expect_strict<Fired>(text(fired_of(1, {3, 4}, {2, 0})));
    expect_strict<Replayed>(list({number(1), number(2), number(3)}));
    expect_strict<Listed>(
        list({text("0"), list({list({text("id"), number(1), number(2),
                                     number(3), number(4)})})}));
    Got got;
    const Tree torn(list({number(2), number(2), text("short")}));
    EXPECT_FALSE(decode(torn.get(), &got));
    expect_strict<Results>(text("04"));
    EXPECT_FALSE(is_reply<Results>(text("015")));
}

bool is_body(double due, const std::string &tail)
{
    Body body;
    return decode_body(
        double_of(3) + double_of(due) + std::string("\7\0", 2) + tail, &body);
}

TEST(DurableCodec, TimesAreWholeAndBounded)
{
    const std::string tail(1, '\0');
    const auto most = static_cast<double>(max_time);
    EXPECT_TRUE(is_body(5, tail));
    EXPECT_TRUE(is_body(most, tail));
    EXPECT_FALSE(is_body(5.5, tail));
    EXPECT_FALSE(is_body(most + 2, tail));
    EXPECT_FALSE(is_body(-1, tail));
}

TEST(DurableCodec, ATimerIsPeriodicInOneWay)
{
    const std::string every = double_of(1000000);
    const std::string cron = double_of(9) + std::string("\1*\0", 3);
    EXPECT_TRUE(is_body(5, '\x08' + every));
    EXPECT_TRUE(is_body(5, '\x20' + cron));
    EXPECT_FALSE(is_body(5, '\x28' + every + cron));
}

std::string end_of(char state)
{
    return state + double_of(3) + double_of(5) + std::string("\7\0", 2) +
           double_of(6);
}

TEST(DurableCodec, AnEndHasAStateOfItsOwn)
{
    const auto is_end = [](char state) {
        End end;
        return decode_end(end_of(state), &end);
    };
    EXPECT_FALSE(is_end(2));
    EXPECT_TRUE(is_end(3));
    EXPECT_TRUE(is_end(6));
    EXPECT_FALSE(is_end(7));
}

TEST(DurableCodec, RepliesKeepToTheirBounds)
{
    const auto opens = [](int shards) {
        return is_reply<Opened>(list({number(shards), number(0), number(0),
                                      number(1), number(1), text("")}));
    };
    EXPECT_FALSE(opens(0));
    EXPECT_TRUE(opens(1));
    EXPECT_TRUE(opens(1024));
    EXPECT_FALSE(opens(1025));

    const auto fires = [](int count, int times) {
        const auto late = static_cast<size_t>(count);
        const auto due = static_cast<size_t>(times);
        return is_reply<Fired>(text(fired_of(1, std::vector<double>(due, 2),
                                             std::vector<double>(late, 7))));
    };
    EXPECT_TRUE(fires(500, 64));
    EXPECT_FALSE(fires(501, 64));
    EXPECT_FALSE(fires(500, 65));

    EXPECT_TRUE(is_reply<Stopped>(list({number(6), number(1)})));
    EXPECT_FALSE(is_reply<Stopped>(list({number(7), number(1)})));

    const auto gets = [](int state, const std::string &end) {
        return is_reply<Got>(list({number(state), number(2), text(end)}));
    };
    EXPECT_TRUE(gets(3, end_of(3)));
    EXPECT_FALSE(gets(3, end_of(4))); // which of them?
}

// The store belongs to all who can reach it.
TEST(DurableCodec, WhatHasFiredIsLateByNoMoreThanItsTimeAllows)
{
    Fired fired;
    const double huge = 1e300;
    const Tree tree(
        text(fired_of(9, {}, {7, 9, 12, -5, -huge, huge, std::nan(""), 7.5})));
    ASSERT_TRUE(decode(tree.get(), &fired));
    EXPECT_EQ(fired.late_us, (std::vector<int64_t>{2, 0, 0, 9, 9, 0, 0, 1}));
    EXPECT_EQ(fired.now_us, 9);
    EXPECT_TRUE(fired.more);

    for (const double time : {-1.0, 0.5, huge, std::nan("")}) {
        EXPECT_FALSE(is_reply<Fired>(text(fired_of(time, {}, {}))));
        EXPECT_FALSE(is_reply<Fired>(text(fired_of(1, {time}, {}))));
    }
    EXPECT_TRUE(is_reply<Fired>(text(fired_of(1, {3, 3}, {}))));
    EXPECT_FALSE(is_reply<Fired>(text(fired_of(1, {4, 3}, {}))));
    EXPECT_FALSE(is_reply<Fired>(text(fired_of(1, {}, {2}) + "x")));
}

TEST(DurableCodec, OfAnEntryThatIsNotOursTheNumberIsKnown)
{
    const Tree tree(list(
        {text("1-1"), list({text("i"), text("a"), text("b"), text("short")})}));
    Entry entry;
    EXPECT_FALSE(decode_entry(tree.get(), &entry));
    EXPECT_EQ(entry.entry, "1-1");
    EXPECT_EQ(entry.id, "");
}

} // namespace
