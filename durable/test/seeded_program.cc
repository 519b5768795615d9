// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A program and its consumer (seeded_program.h).

#include "seeded_program.h"

#include "seeded_world.h"

#include "src/handle.h"
#include "src/link_impl.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace lawn_test
{

namespace
{

lawn_time_t read_time()
{
    return lawn_time_from_usec(
        static_cast<double>(SeededNetwork::current->now()));
}

} // namespace

SeededProgram::SeededProgram(SeededWorld &world, std::string name)
    : world_(world), name_(std::move(name))
{
    open();
}

SeededProgram::~SeededProgram()
{
    close();
}

// ---- Its life.

void SeededProgram::open()
{
    durable_ = new lawn_durable(read_time);
    lawn_durable_params_t &params = durable_->params;
    params.max_requests = 1000;
    params.connect_timeout_us = 500000;
    params.request_timeout_us = 1000000;
    if (durable_->loop.open() != LAWN_OK) {
        world_.object("there is no loop");
    }
    lawn::durable::Url url;
    url.endpoints.push_back({"server", 6379});
    durable_->link = std::make_unique<lawn::durable::LinkImpl>(
        durable_->loop, params, "lawn", url);
    open_pump();
    open_consumer();
}

void SeededProgram::close()
{
    is_closing_ = true;
    close_consumer();
    lawn_durable_close(durable_);
    is_closing_ = false;
}

void SeededProgram::open_pump()
{
    lawn_durable_pump_params_t params = {};
    params.name = name_.c_str();
    if (lawn_durable_pump_start(durable_, &params, &pump_) != LAWN_OK) {
        world_.object("there is no pump");
    }
}

void SeededProgram::close_pump()
{
    lawn_durable_pump_close(std::exchange(pump_, nullptr));
}

// It goes on under its name, or has a new one.
void SeededProgram::open_consumer()
{
    SeededNetwork &network = world_.network();
    names_ += network.random(2) == 0;
    const std::string name = name_ + "-" + std::to_string(names_);
    lawn_durable_consume_t params = {};
    params.name = name.c_str();
    max_in_flight_ = 1 + network.random(4);
    params.max_in_flight = static_cast<unsigned>(max_in_flight_);
    params.lease_us = lease_us;
    lost_ = 0;
    hears_of_lost_ = network.random(4) != 0;
    if (hears_of_lost_) {
        params.lost = [](void *arg, const lawn_durable_delivery_t *delivery) {
            static_cast<SeededProgram *>(arg)->on_lost(delivery);
        };
    } else {
        world_.expect_late_answers();
    }
    const auto deliver = [](void *arg,
                            const lawn_durable_delivery_t *delivery) {
        static_cast<SeededProgram *>(arg)->deliver(delivery);
    };
    if (lawn_durable_consume(durable_, &params, deliver, this, &consumer_) !=
        LAWN_OK) {
        world_.object("there is no consumer");
    }
}

void SeededProgram::close_consumer()
{
    if (!consumer_) {
        return;
    }
    if (hears_of_lost_ && lawn_durable_consumer_lost(consumer_) != lost_) {
        world_.object("lost leases are not counted as they are told");
    }
    held_.clear();
    extended_.clear();
    const bool was_closing = std::exchange(is_closing_, true);
    lawn_durable_consumer_close(std::exchange(consumer_, nullptr));
    is_closing_ = was_closing;
}

void SeededProgram::open_consumer_again()
{
    SeededNetwork &network = world_.network();
    close_consumer();
    network.at(network.now() + 5 * ms, [this] {
        if (!consumer_) {
            open_consumer();
        }
    });
}

void SeededProgram::do_something()
{
    switch (world_.network().random(8)) {
    case 0: // as if it had been killed
        world_.network().cut_off(durable_->loop.fd());
        close();
        open();
        break;
    case 1:
        close();
        open();
        break;
    case 2:
        open_consumer_again();
        break;
    case 3:
        close_pump();
        open_pump();
        break;
    case 4:
        world_.network().reset_all();
        break;
    default:
        break;
    }
}

bool SeededProgram::is_ready() const
{
    return world_.network().is_ready(durable_->loop.fd()) ||
           durable_->loop.sleeps_until() <= read_time();
}

int64_t SeededProgram::next_poll_us() const
{
    const lawn_time_t next = durable_->loop.sleeps_until();
    return next == LAWN_TIME_INFINITY
               ? INT64_MAX
               : static_cast<int64_t>(std::ceil(lawn_time_to_usec(next)));
}

bool SeededProgram::is_done() const
{
    return std::all_of(answers_.begin(), answers_.end(),
                       [](const Answer &i) { return i.is_answered; });
}

bool SeededProgram::is_well() const
{
    return lawn_durable_error(durable_) == nullptr;
}

// ---- Deliveries.

void SeededProgram::deliver(const lawn_durable_delivery_t *delivery)
{
    world_.on_delivery(*delivery);
    if (!held_.emplace(delivery, ++given_).second) {
        world_.object("a delivery is given twice without an answer");
    }
    if (hears_of_lost_ && held_.size() > max_in_flight_) {
        world_.object("there is more in flight than may be");
    }
    handle(delivery);
}

void SeededProgram::handle(const lawn_durable_delivery_t *delivery)
{
    SeededNetwork &network = world_.network();
    const int64_t now = network.now();
    const auto within = [&network](uint64_t most_us) {
        return static_cast<int64_t>(network.random(most_us));
    };
    switch (world_.is_calm() ? 99 : network.random(16)) {
    case 0: // in time, surely
        work(delivery, now + within(lease_us - 10 * ms));
        break;
    case 1: // too late, unless nobody has taken it over
        work(delivery,
             now + static_cast<int64_t>(lease_us) + 10 * ms + within(lease_us));
        break;
    case 2: // in time, as it is extended
        extended_.insert(delivery);
        work(delivery, now + within(4 * lease_us));
        break;
    case 3:
        answer(delivery, LAWN_DURABLE_RETRY, network.random(20 * ms));
        break;
    case 4:
        answer(delivery, LAWN_DURABLE_DEFER, network.random(20 * ms));
        break;
    case 5:
        answer(delivery, LAWN_DURABLE_REJECT, 0);
        break;
    case 6: // it is forgotten
        break;
    case 7:
        open_consumer_again();
        break;
    default:
        answer(delivery, LAWN_DURABLE_DONE, 0);
        break;
    }
}

// Answers then, and extends the lease until then if that is said.
void SeededProgram::work(const lawn_durable_delivery_t *delivery,
                         int64_t until_us)
{
    SeededNetwork &network = world_.network();
    const int64_t next =
        std::min(until_us, network.now() + static_cast<int64_t>(lease_us) / 3);
    network.at(next, [this, delivery, until_us, given = held_.at(delivery)] {
        const auto held = held_.find(delivery);
        if (held == held_.end() || held->second != given) {
            return;
        }
        if (world_.network().now() >= until_us) {
            answer(delivery, LAWN_DURABLE_DONE, 0);
            return;
        }
        if (extended_.count(delivery) != 0) {
            lawn_durable_extend(consumer_, delivery);
        }
        work(delivery, until_us);
    });
}

void SeededProgram::answer(const lawn_durable_delivery_t *delivery,
                           lawn_durable_answer_t answer, uint64_t delay_us)
{
    answers_.emplace_back();
    answers_.back().program = this;
    answers_.back().answer = answer;
    const auto done = [](void *arg, const lawn_durable_result_t *result) {
        Answer *const to = static_cast<Answer *>(arg);
        to->program->on_answered(to, *result);
    };
    held_.erase(delivery);
    extended_.erase(delivery);
    if (lawn_durable_answer(consumer_, delivery, answer, delay_us, nullptr,
                            done, &answers_.back()) != LAWN_OK) {
        world_.object("an answer is refused");
    }
}

void SeededProgram::on_answered(Answer *answer,
                                const lawn_durable_result_t &result)
{
    static constexpr int states[] = {LAWN_DURABLE_SUCCESS, LAWN_DURABLE_PENDING,
                                     LAWN_DURABLE_FAIL, LAWN_DURABLE_PENDING};
    if (answer->is_answered) {
        world_.object("an answer is answered twice");
    }
    answer->is_answered = true;
    if (!is_closing_ && world_.are_leases_kept() &&
        (result.status != LAWN_OK || result.state != states[answer->answer])) {
        world_.object(std::string("an answer in time does not count: ") +
                      (result.error ? result.error : "another state"));
    }
}

void SeededProgram::on_lost(const lawn_durable_delivery_t *delivery)
{
    ++lost_;
    if (held_.erase(delivery) == 0) {
        world_.object("a lease is lost of what is answered, or twice");
    }
    if (extended_.erase(delivery) != 0 && world_.are_leases_kept()) {
        world_.object("a lease is lost although it is extended");
    }
}

} // namespace lawn_test
