// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Why a consumer cannot do its work in some shards: a line for each that cannot
// be read, and one for each from which nothing can be taken over. Failures that
// pass are not told.

#ifndef LAWN_SRC_DURABLE_SHARD_ERRORS_H
#define LAWN_SRC_DURABLE_SHARD_ERRORS_H

#include "src/link.h"

#include <string>
#include <vector>

namespace lawn::durable
{

class ShardErrors
{
public:
    // Of the stream that is read.
    ShardErrors(const Link &link, Key stream);

    void start(unsigned shards);
    // A shard cannot be read, because of `why`. The first reason stays until
    // the shard was read: it names the key.
    void tell(unsigned shard, const char *why);
    // The same, if the failure lasts.
    void note(unsigned shard, const Answer &answer);
    // What has come of taking over. The shard is read all the same.
    void note_take(unsigned shard, const Answer &answer);
    // The shard was read.
    void clear(unsigned shard);
    // That of the first shard which has one; "" if none has.
    std::string first() const;

private:
    struct Errors {
        std::string read; // why it cannot be read
        std::string take; // why nothing can be taken over
    };

    const Link &link_;
    const Key stream_;
    std::vector<Errors> errors_;
};

} // namespace lawn::durable

#endif
