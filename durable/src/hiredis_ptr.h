// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Owners of what hiredis allocates.

#ifndef LAWN_SRC_DURABLE_HIREDIS_PTR_H
#define LAWN_SRC_DURABLE_HIREDIS_PTR_H

#include <hiredis/hiredis.h>

#include <memory>

namespace lawn::durable
{

struct FreeHiredis {
    void operator()(redisContext *context) const
    {
        redisFree(context);
    }
    void operator()(redisReader *reader) const
    {
        redisReaderFree(reader);
    }
    void operator()(redisReply *reply) const
    {
        freeReplyObject(reply);
    }
};

using ContextPtr = std::unique_ptr<redisContext, FreeHiredis>;
using ReaderPtr = std::unique_ptr<redisReader, FreeHiredis>;
using ReplyPtr = std::unique_ptr<redisReply, FreeHiredis>;

} // namespace lawn::durable

#endif
