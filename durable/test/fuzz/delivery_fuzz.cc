// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A consumer and a pump whose store says anything: entries of streams, replies
// of the functions, messages and errors, in any order, while the program
// answers, extends and ends. Neither crashes. The consumer gives no more than
// it may, nothing that no timer can have, and hears of each of its answers
// exactly once.

#include "fake_link.h"
#include "reply_input.h"

#include "src/codec.h"
#include "src/handle.h"

#include <lawn/durable.h>

#include <set>

namespace
{

constexpr unsigned most_steps = 200;

class World
{
public:
    explicit World(fuzz::Input *input);
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    void run();

private:
    static void on_delivery(void *arg, const lawn_durable_delivery_t *delivery)
    {
        static_cast<World *>(arg)->take(delivery);
    }

    static void on_lost(void *arg, const lawn_durable_delivery_t *delivery)
    {
        static_cast<World *>(arg)->lose(delivery);
    }

    static void on_answered(void *arg, const lawn_durable_result_t *)
    {
        ++static_cast<World *>(arg)->told_;
    }

    void open();
    void step();
    void take(const lawn_durable_delivery_t *delivery);
    void lose(const lawn_durable_delivery_t *delivery);
    void answer_program(const lawn_durable_delivery_t *delivery);
    void answer_store();
    void touch_channel();
    void end_something();
    const lawn_durable_delivery_t *some_delivery();

    fuzz::Input *const input_;
    lawn_durable_t *const durable_;
    fuzz::FakeLink *link_ = nullptr; // of `durable_`
    lawn_durable_consumer_t *consumer_ = nullptr;
    lawn_durable_pump_t *pump_ = nullptr;
    std::set<const lawn_durable_delivery_t *> live_;
    size_t max_in_flight_ = 0;
    uint64_t limit_ = 0;
    uint64_t given_ = 0;
    unsigned answered_ = 0;
    uint64_t lost_ = 0;
    unsigned told_ = 0;
    bool is_giving_ = false;
    bool is_stopped_ = false;
    bool is_silent_ = false; // answers nothing
};

World::World(fuzz::Input *input) : input_(input), durable_(new lawn_durable())
{
    durable_->params = {};
    durable_->params.request_timeout_us = 1000000;
    FUZZ_CHECK(durable_->loop.open() == LAWN_OK);
    const unsigned shape = input_->byte();
    auto link = std::make_unique<fuzz::FakeLink>(durable_->loop, 1 + shape % 3,
                                                 (shape & 4) != 0);
    link_ = link.get();
    durable_->link = std::move(link);
    open();
}

void World::open()
{
    const unsigned choice = input_->byte();
    is_silent_ = (choice & 1) != 0;
    max_in_flight_ = 1 + (choice >> 1 & 7);
    limit_ = choice >> 4;
    lawn_durable_consume_t consume = {};
    consume.group = "g";
    consume.name = "c";
    consume.max_in_flight = static_cast<unsigned>(max_in_flight_);
    consume.limit = limit_;
    consume.no_answer = is_silent_;
    consume.lease_us = 1000000;
    consume.lost = on_lost;
    FUZZ_CHECK(lawn_durable_consume(durable_, &consume, on_delivery, this,
                                    &consumer_) == LAWN_OK);
    lawn_durable_pump_params_t params = {};
    params.name = "p";
    FUZZ_CHECK(lawn_durable_pump_start(durable_, &params, &pump_) == LAWN_OK);
    durable_->loop.defer([this] { link_->run_when_open(); });
    lawn_durable_poll(durable_);
}

World::~World()
{
    lawn_durable_close(durable_);
    FUZZ_CHECK(told_ == answered_);
}

void World::take(const lawn_durable_delivery_t *delivery)
{
    FUZZ_CHECK(!is_stopped_ && consumer_ != nullptr);
    FUZZ_CHECK(lawn::durable::id_is_valid(delivery->id));
    FUZZ_CHECK(delivery->payload_size <= lawn::durable::max_payload);
    FUZZ_CHECK(delivery->due_us >= 0 &&
               delivery->due_us <= lawn::durable::max_time);
    FUZZ_CHECK(delivery->fired_us >= 0 &&
               delivery->fired_us <= lawn::durable::max_time);
    FUZZ_CHECK(delivery->deliveries > 0);
    ++given_;
    FUZZ_CHECK(limit_ == 0 || given_ <= limit_);
    if (is_silent_) {
        return;
    }
    FUZZ_CHECK(live_.insert(delivery).second);
    FUZZ_CHECK(live_.size() <= max_in_flight_);
    is_giving_ = true;
    switch (input_->byte_at_end() % 8) {
    case 0:
        answer_program(delivery);
        break;
    case 1:
        lawn_durable_extend(consumer_, delivery);
        break;
    case 2:
        is_stopped_ = true;
        lawn_durable_consumer_stop(consumer_);
        break;
    default:
        break;
    }
    is_giving_ = false;
}

void World::lose(const lawn_durable_delivery_t *delivery)
{
    FUZZ_CHECK(consumer_ != nullptr && !is_silent_);
    FUZZ_CHECK(live_.erase(delivery) == 1);
    ++lost_;
    FUZZ_CHECK(lawn_durable_consumer_lost(consumer_) >= lost_);
}

void World::answer_program(const lawn_durable_delivery_t *delivery)
{
    const unsigned choice = is_giving_ ? input_->byte_at_end() : input_->byte();
    const lawn_durable_answer_t answers[] = {
        LAWN_DURABLE_DONE, LAWN_DURABLE_RETRY, LAWN_DURABLE_REJECT,
        LAWN_DURABLE_DEFER};
    const uint64_t delay =
        (choice & 4) != 0 ? LAWN_DURABLE_BACKOFF : choice * uint64_t{1000};
    FUZZ_CHECK(lawn_durable_answer(consumer_, delivery, answers[choice % 4],
                                   delay, (choice & 8) != 0 ? "why" : nullptr,
                                   on_answered, this) == LAWN_OK);
    ++answered_;
    live_.erase(delivery);
}

const lawn_durable_delivery_t *World::some_delivery()
{
    if (live_.empty()) {
        return nullptr;
    }
    auto at = live_.begin();
    std::advance(at, input_->byte() % live_.size());
    return *at;
}

void World::answer_store()
{
    const unsigned choice = input_->byte();
    if (choice % 8 == 7) {
        const lawn_status_t errors[] = {LAWN_ERR_IO, LAWN_ERR_NO_MEMORY,
                                        LAWN_ERR_CORRUPT, LAWN_ERR_BUSY,
                                        LAWN_ERR_TIMED_OUT};
        link_->answer(choice, fuzz::failure(errors[input_->byte() % 5]));
        return;
    }
    fuzz::Replies replies(input_, [this](unsigned shard) {
        return link_->key(shard % link_->shards(), lawn::durable::Key::out);
    });
    const redisReply *const reply = replies.next();
    if (reply->type == REDIS_REPLY_ERROR) {
        link_->answer(choice / 8, fuzz::failure(LAWN_ERR_IO));
    } else {
        link_->answer(choice / 8, {LAWN_OK, "", reply, 0});
    }
}

void World::touch_channel()
{
    const unsigned choice = input_->byte();
    fuzz::FakeChannel *const channel = link_->channel(choice / 4);
    if (channel == nullptr) {
        return;
    }
    if (choice % 4 == 0) {
        if (channel->is_connected()) {
            channel->lose();
        } else {
            channel->connect();
        }
    } else if (choice % 4 == 1) {
        channel->tell(link_->wake_channel(input_->byte() % link_->shards()),
                      std::to_string(input_->number()));
    } else if (!channel->is_connected()) {
        channel->connect();
    } else {
        channel->tell(fuzz::text_of(input_), fuzz::text_of(input_));
    }
}

void World::end_something()
{
    switch (input_->byte() % 8) {
    case 0:
        if (pump_ != nullptr) {
            lawn_durable_pump_close(std::exchange(pump_, nullptr));
        }
        break;
    case 1:
        if (consumer_ != nullptr) {
            is_stopped_ = true;
            lawn_durable_consumer_stop(consumer_);
        }
        break;
    case 2:
        if (consumer_ != nullptr) {
            lawn_durable_consumer_close(std::exchange(consumer_, nullptr));
            live_.clear();
        }
        break;
    default:
        break;
    }
}

void World::step()
{
    const lawn_durable_delivery_t *delivery;
    switch (input_->byte() % 8) {
    case 0:
        touch_channel();
        break;
    case 1:
        delivery = some_delivery();
        if (delivery != nullptr) {
            answer_program(delivery);
        }
        break;
    case 2:
        delivery = some_delivery();
        if (delivery != nullptr) {
            lawn_durable_extend(consumer_, delivery);
        }
        break;
    case 3:
        end_something();
        break;
    default:
        answer_store();
        break;
    }
}

void World::run()
{
    for (unsigned i = 0; i < most_steps && !input_->is_empty(); ++i) {
        // As the link does: callbacks come from within a poll.
        durable_->loop.defer([this] { step(); });
        lawn_durable_poll(durable_);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz::Input input(data, size);
    World world(&input);
    world.run();
    return 0;
}
