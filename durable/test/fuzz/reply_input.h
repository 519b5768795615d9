// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Replies of a hostile store, from the bytes of an input: anything at all, and
// what is nearly as the durable tier expects it, so that an input need not
// guess field names, keys and numbers that are stored as doubles.

#ifndef LAWN_TEST_FUZZ_REPLY_INPUT_H
#define LAWN_TEST_FUZZ_REPLY_INPUT_H

#include "../../../test/fuzz/input.h"

#include <hiredis/hiredis.h>

#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace fuzz
{

constexpr unsigned deepest_reply = 6;
constexpr unsigned largest_reply = 400; // replies in one

inline std::string text_of(Input *input)
{
    size_t length = input->byte();
    const uint8_t *const bytes = input->bytes(&length);
    return std::string(reinterpret_cast<const char *>(bytes), length);
}

inline void put_double(std::string *text, uint64_t number)
{
    const auto value = static_cast<double>(number);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    for (size_t i = 0; i < sizeof(bits); ++i) {
        *text += static_cast<char>(bits >> 8 * i & 0xff);
    }
}

// A head that is one, and what the input says behind it.
inline std::string body_of(Input *input)
{
    std::string body;
    put_double(&body, input->number());
    put_double(&body, input->number());
    body += static_cast<char>(input->byte());
    body += static_cast<char>(input->byte());
    return body + text_of(input);
}

// The replies belong to it, and so do all texts in them.
class Replies
{
public:
    // `key` gives the name of the stream of a shard.
    Replies(Input *input, std::function<std::string(unsigned)> key)
        : input_(input), key_(std::move(key))
    {
    }

    const redisReply *next()
    {
        left_ = largest_reply;
        return any(0);
    }

private:
    using List = std::vector<redisReply *>;

    redisReply *add(int type)
    {
        replies_.emplace_back();
        redisReply *const reply = &replies_.back();
        *reply = {};
        reply->type = type;
        left_ -= left_ > 0;
        return reply;
    }

    redisReply *number(uint64_t value)
    {
        redisReply *const reply = add(REDIS_REPLY_INTEGER);
        reply->integer = static_cast<long long>(value);
        return reply;
    }

    redisReply *text(const std::string &value, int type = REDIS_REPLY_STRING)
    {
        texts_.push_back(value);
        redisReply *const reply = add(type);
        reply->str = &texts_.back()[0];
        reply->len = texts_.back().size();
        return reply;
    }

    redisReply *list(List elements)
    {
        lists_.push_back(std::move(elements));
        redisReply *const reply = add(REDIS_REPLY_ARRAY);
        reply->element = lists_.back().data();
        reply->elements = lists_.back().size();
        return reply;
    }

    template <class Make> redisReply *some(Make make)
    {
        List all;
        for (unsigned i = input_->byte() % 8; i > 0 && left_ > 0; --i) {
            all.push_back(make());
        }
        return list(std::move(all));
    }

    redisReply *id()
    {
        return text("t" + std::to_string(input_->byte() % 8));
    }

    redisReply *name()
    {
        return text(std::to_string(input_->byte() % 16) + "-1");
    }

    redisReply *fields()
    {
        std::string body;
        put_double(&body, input_->number());
        body += body_of(input_);
        List all = {text("i"), id(), text("b"), text(body)};
        if (input_->byte() % 4 == 0) {
            const char *const more[] = {"r", "l", "i", "b"};
            all.push_back(text(more[input_->byte() % 4]));
            all.push_back(any(deepest_reply));
        }
        return list(std::move(all));
    }

    redisReply *entry()
    {
        return list({name(), fields()});
    }

    redisReply *fired()
    {
        uint64_t due = input_->number();
        List dues;
        for (unsigned i = input_->byte() % 70; i > 0; --i) {
            dues.push_back(number(due));
            due += input_->byte();
        }
        return list({number(input_->number()), number(input_->byte()),
                     number(input_->byte() % 2), number(input_->byte() % 3),
                     list(std::move(dues))});
    }

    redisReply *cron()
    {
        return list({id(), number(input_->number()), number(input_->number()),
                     text(text_of(input_)),
                     text(input_->byte() % 2 != 0 ? "" : "Europe/Berlin")});
    }

    redisReply *any(unsigned depth)
    {
        const unsigned what = input_->byte() % 20;
        if (what < 6 || depth >= deepest_reply || left_ == 0) {
            return leaf(what % 6);
        }
        switch (what) {
        case 6:
            return id();
        case 7:
            return name();
        case 8:
            return text(key_(input_->byte()));
        case 9:
            return fields();
        case 10:
            return entry();
        case 11: // of lawn_take
            return list(
                {number(input_->byte() % 2), some([this] {
                     return list({name(), number(input_->byte()), fields()});
                 })});
        case 12:
            return some([this] { return entry(); });
        case 13:
            return list(
                {text(key_(input_->byte())), some([this] { return entry(); })});
        case 14: // of XREADGROUP
            return some([this] {
                return list({text(key_(input_->byte())),
                             some([this] { return entry(); })});
            });
        case 15:
            return fired();
        case 16:
            return some([this] { return cron(); });
        case 17: // of XPENDING
            return some([this] {
                return list({name(), text("c"), number(input_->byte()),
                             number(input_->byte())});
            });
        default:
            return some([this, depth] { return any(depth + 1); });
        }
    }

    redisReply *leaf(unsigned what)
    {
        switch (what) {
        case 0:
            return add(REDIS_REPLY_NIL);
        case 1:
            return text(text_of(input_));
        case 2:
            return text(text_of(input_), REDIS_REPLY_STATUS);
        case 3:
            return text(text_of(input_), REDIS_REPLY_ERROR);
        case 4:
            return text(body_of(input_));
        default:
            return number(input_->number());
        }
    }

    Input *const input_;
    const std::function<std::string(unsigned)> key_;
    unsigned left_ = 0;
    std::deque<redisReply> replies_;
    std::deque<std::string> texts_;
    std::deque<List> lists_;
};

} // namespace fuzz

#endif
