// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A reply as hiredis has it, made from a reply of the fixture. It belongs to
// the tree, and so do all texts in it.

#ifndef LAWN_TEST_DURABLE_REPLY_TREE_H
#define LAWN_TEST_DURABLE_REPLY_TREE_H

#include "redis_server.h"

#include <deque>

namespace lawn_test
{

class Tree
{
public:
    explicit Tree(const Reply &reply) : root_(add(reply))
    {
    }
    Tree(const Tree &) = delete;
    Tree &operator=(const Tree &) = delete;

    const redisReply *get() const
    {
        return root_;
    }

private:
    redisReply *add(const Reply &from)
    {
        replies_.emplace_back();
        redisReply *const to = &replies_.back();
        texts_.push_back(from.string);
        to->str = &texts_.back()[0];
        to->len = texts_.back().size();
        to->integer = from.integer;
        switch (from.type) {
        case Reply::number:
            to->type = REDIS_REPLY_INTEGER;
            break;
        case Reply::list: {
            to->type = REDIS_REPLY_ARRAY;
            lists_.emplace_back();
            std::vector<redisReply *> &list = lists_.back();
            for (const Reply &element : from.elements) {
                list.push_back(add(element));
            }
            to->element = list.data();
            to->elements = list.size();
            break;
        }
        case Reply::text:
            to->type = REDIS_REPLY_STRING;
            break;
        case Reply::status:
            to->type = REDIS_REPLY_STATUS;
            break;
        case Reply::error:
            to->type = REDIS_REPLY_ERROR;
            break;
        default:
            to->type = REDIS_REPLY_NIL;
            break;
        }
        return to;
    }

    std::deque<redisReply> replies_;
    std::deque<std::string> texts_;
    std::deque<std::vector<redisReply *>> lists_;
    redisReply *root_;
};

} // namespace lawn_test

#endif
