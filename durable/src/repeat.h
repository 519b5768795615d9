// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A call that is made again while nobody knows whether it was carried out. Its
// repeats must be answered like the first.

#ifndef LAWN_SRC_DURABLE_REPEAT_H
#define LAWN_SRC_DURABLE_REPEAT_H

#include "src/link.h"

#include <list>
#include <memory>
#include <string>

struct lawn_durable;

namespace lawn::durable
{

class Repeat
{
public:
    // `done` gets the answer when it is certain, or the client is closed.
    static void make(lawn_durable *durable, Call call, Done done);
    // Those that wait for their next call are answered.
    static void end_all(lawn_durable *durable);

private:
    Repeat(lawn_durable *durable, Call call, Done done);

    void send();
    void on_answer(const Answer &answer);
    void finish(const Answer &answer);

    lawn_durable *const durable_;
    const Call call_;
    const Done done_;
    std::list<std::unique_ptr<Repeat>>::iterator at_; // in those of the client
    Timer pause_;
    std::string error_; // of the last answer
};

} // namespace lawn::durable

#endif
