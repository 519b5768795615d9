// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Deliveries are taken over (take_over.h).

#include "src/take_over.h"

#include "src/guard.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

constexpr size_t most_taken = 100;

} // namespace

TakeOver::TakeOver(Link &link, const ConsumerConfig &config, Owner &owner)
    : link_(link), config_(config), owner_(owner),
      timer_(link.loop(), [this] { look_at_all(); })
{
}

void TakeOver::start(unsigned shards)
{
    is_busy_.assign(shards, false);
}

void TakeOver::stop()
{
    timer_.stop();
}

void TakeOver::soon()
{
    timer_.start_after(0);
}

void TakeOver::look_at_all()
{
    to_look_at_ = is_busy_.size();
    go_on();
}

// Takes over no more than can be given, for that counts as a delivery. It comes
// before the owner's go_on(), which reads: where a stream always has new
// entries, reading would never leave room. Then half a lease is for reading
// alone.
void TakeOver::go_on()
{
    const bool has_memory = attempt([this] {
        while (to_look_at_ > 0 && owner_.room() > 0) {
            --to_look_at_;
            next_ = (next_ + 1) % is_busy_.size();
            take_from(static_cast<unsigned>(next_));
        }
    });
    if (!has_memory || (to_look_at_ == 0 && !timer_.is_active())) {
        timer_.start_after(has_memory ? config_.lease_us / 2 : retry_us);
    }
}

void TakeOver::take_from(unsigned shard)
{
    const size_t count = std::min(owner_.room(), most_taken);
    if (count == 0 || is_busy_[shard] || !owner_.may_take_from(shard)) {
        return;
    }
    link_.call(call_for(shard, count),
               owner_.if_running([this, shard, count](const Answer &answer) {
                   on_taken(shard, count, answer);
               }));
    is_busy_[shard] = true;
    asked_ += count;
}

Call TakeOver::call_for(unsigned shard, size_t count) const
{
    Call call;
    call.function = "lawn_take";
    call.keys = {Key::due,    Key::body,   Key::meta, config_.stream,
                 Key::ended0, Key::ended1, Key::dead};
    call.args = {config_.group, config_.name, std::to_string(config_.lease_us),
                 std::to_string(count)};
    call.shard = shard;
    return call;
}

void TakeOver::on_taken(unsigned shard, size_t count, const Answer &answer)
{
    is_busy_[shard] = false;
    asked_ -= count;
    bool is_more = false;
    attempt([&] { is_more = owner_.on_taken(shard, answer); });
    if (is_more) {
        to_look_at_ = is_busy_.size();
    }
    go_on();
    owner_.go_on(); // has a reader go on that has waited for this
}

} // namespace lawn::durable
