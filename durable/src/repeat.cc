// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "src/repeat.h"

#include "src/handle.h"

namespace lawn::durable
{

namespace
{

constexpr uint64_t pause_us = 200000;

} // namespace

Repeat::Repeat(lawn_durable *durable, Call call, Done done)
    : durable_(durable), call_(std::move(call)), done_(std::move(done)),
      pause_(durable->loop, [this] { send(); })
{
}

void Repeat::make(lawn_durable *durable, Call call, Done done)
{
    std::unique_ptr<Repeat> repeat(
        new Repeat(durable, std::move(call), std::move(done)));
    Repeat *const self = repeat.get();
    durable->repeats.push_back(std::move(repeat));
    self->at_ = std::prev(durable->repeats.end());
    if (!attempt([self] { self->send(); })) {
        durable->repeats.erase(self->at_);
        throw std::bad_alloc();
    }
}

void Repeat::end_all(lawn_durable *durable)
{
    for (auto next = durable->repeats.begin();
         next != durable->repeats.end();) {
        Repeat *const self = (next++)->get();
        if (self->pause_.is_active()) {
            self->pause_.stop();
            const std::string error = std::move(self->error_);
            attempt([self, &error] {
                self->finish({LAWN_ERR_IO, error.c_str(), nullptr, 0});
            });
        }
    }
}

void Repeat::send()
{
    durable_->link->call(call_,
                         [this](const Answer &answer) { on_answer(answer); });
}

void Repeat::on_answer(const Answer &answer)
{
    const bool is_unknown =
        answer.status == LAWN_ERR_IO || answer.status == LAWN_ERR_TIMED_OUT;
    if (is_unknown && !durable_->is_closing) {
        error_ = answer.error;
        pause_.start_after(pause_us);
    } else {
        finish(answer);
    }
}

void Repeat::finish(const Answer &answer)
{
    done_(answer);
    durable_->repeats.erase(at_);
}

} // namespace lawn::durable
