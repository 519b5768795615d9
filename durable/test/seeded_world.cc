// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Programs and their judge (seeded_world.h).

#include "seeded_world.h"

#include <algorithm>

namespace lawn_test
{

namespace
{

constexpr int64_t sec = 1000 * ms;
// When nothing fails any more, by the longest pauses. A connection that is mute
// is noticed after two beats of five seconds, and the sweep of a pump may be
// what notices that a message is missing.
constexpr int64_t soon_us = 8 * sec;
constexpr int64_t soon_after_mute_us = 40 * sec;
constexpr unsigned most_rounds = 1000; // of polls, at one time

} // namespace

SeededWorld::SeededWorld(uint64_t seed, const Options &options)
    : network_(seed, store_), options_(options),
      is_healthy_(options.faults_permille == 0 && options.fault_step == 0)
{
    store_.begin(&network_, 1 + static_cast<unsigned>(network_.random(3)));
    store_.plan_fault(options.fault_step, options.fault);
    begin_faults();
    is_all_async_ = network_.random(3) != 0;
    const size_t by_chance = 1 + (network_.random(3) == 0);
    const size_t programs = options.programs ? options.programs : by_chance;
    for (size_t i = 0; i < programs; ++i) {
        programs_.emplace_back(*this, "program-" + std::to_string(i));
    }
}

void SeededWorld::begin_faults()
{
    network_.faults_permille = options_.faults_permille;
    // The one fault may come later than the end of the others.
    is_healed_ = options_.fault_step == 0 && network_.random(4) != 0;
    faults_end_us_ =
        network_.now() + static_cast<int64_t>(network_.random(3000)) * ms;
}

void SeededWorld::object(const std::string &what)
{
    if (objection_.empty()) {
        objection_ = "at " + std::to_string(network_.now()) + " us: " + what;
    }
}

// ---- Requests.

SeededWorld::Request *SeededWorld::request(Timer *timer, Kind kind)
{
    requests_.emplace_back();
    Request *const made = &requests_.back();
    made->world = this;
    made->timer = timer;
    made->kind = kind;
    return made;
}

void SeededWorld::send(Request *request)
{
    const Timer &timer = *request->timer;
    const auto done = [](void *arg, const lawn_durable_result_t *result) {
        Request *const to = static_cast<Request *>(arg);
        to->world->on_done(to, *result);
    };
    lawn_durable_t *const durable = programs_.front().client();
    lawn_status_t status;
    if (request->kind == Kind::start) {
        lawn_durable_start_t start = {};
        start.id = timer.id.c_str();
        start.delay_us = timer.delay_us;
        start.token = timer.token;
        start.until_known = timer.until_known;
        start.durability = timer.durability;
        status = lawn_durable_start(durable, &start, done, request);
    } else if (request->kind == Kind::update) {
        lawn_durable_update_t update = {};
        update.id = timer.id.c_str();
        update.generation = timer.generation;
        update.delay_us = timer.new_delay_us;
        update.durability = timer.durability;
        status = lawn_durable_update(durable, &update, done, request);
    } else {
        status = lawn_durable_stop(durable, timer.id.c_str(), timer.durability,
                                   done, request);
    }
    if (status != LAWN_OK) {
        object("a request is refused");
    }
}

void SeededWorld::on_done(Request *request, const lawn_durable_result_t &result)
{
    if (request->is_answered) {
        object("a request is answered twice");
    }
    request->is_answered = true;
    request->status = result.status;
    request->state = result.state;
    if (result.status == LAWN_OK && request->kind == Kind::start) {
        on_started(request, result);
        if (request->together) {
            check_order(*request, *request->together);
        }
    } else if (request->kind == Kind::update &&
               (result.status == LAWN_OK ||
                result.status == LAWN_ERR_NO_ELEM)) {
        on_updated(request, result);
    } else if (result.status == LAWN_OK) {
        check_order(*request->together, *request);
        check_safety(store_.model().stop_of(request->timer->id),
                     request->timer->durability);
    } else if (result.status == LAWN_ERR_IO ||
               result.status == LAWN_ERR_TIMED_OUT) {
        if (request->kind == Kind::start && request->timer->until_known &&
            !programs_.front().is_closing()) {
            object(std::string("a start until it is known is not known: ") +
                   (result.error ? result.error : ""));
        }
        repeat(request);
    } else {
        object(std::string("a request ends with ") +
               lawn_status_string(result.status) + ": " +
               (result.error ? result.error : ""));
    }
}

void SeededWorld::on_started(Request *request,
                             const lawn_durable_result_t &result)
{
    Timer *const timer = request->timer;
    const SeededModel::Start *const first =
        store_.model().start_of(timer->token);
    if (!timer->is_acknowledged && timer->new_delay_us != 0) {
        timer->generation = result.generation;
        send(this->request(timer, Kind::update));
    }
    timer->is_acknowledged = true;
    if (!first) {
        object("a start that was not carried out is acknowledged");
    } else if (result.generation != first->generation ||
               result.due_us != first->due_us) {
        object("a start is not answered like the first of its token");
    } else {
        check_safety(first->write, timer->durability);
    }
}

// Of what is acknowledged.
void SeededWorld::check_safety(uint64_t write, int durability)
{
    const SeededModel::Place place = durability == LAWN_DURABLE_FSYNC
                                         ? SeededModel::disk
                                         : SeededModel::replica;
    if (durability != LAWN_DURABLE_ASYNC &&
        !store_.model().is_safe(write, place)) {
        object("what is acknowledged is not safe");
    }
}

int SeededWorld::random_durability()
{
    static const int all[] = {LAWN_DURABLE_ASYNC, LAWN_DURABLE_FSYNC, 1};
    return is_all_async_ ? LAWN_DURABLE_ASYNC : all[network_.random(3)];
}

// The stop was asked for right behind the start.
void SeededWorld::check_order(const Request &start, const Request &stop)
{
    if (start.is_answered && start.is_first && start.status == LAWN_OK &&
        stop.is_answered && stop.is_first && stop.status == LAWN_OK &&
        stop.state == LAWN_DURABLE_UNKNOWN) {
        object("a stop was done before the start that came first");
    }
}

// Whoever does not know asks again.
void SeededWorld::repeat(Request *request)
{
    network_.at(network_.now() + 10 * ms, [this, request] {
        request->is_answered = false;
        request->is_first = false;
        send(request);
    });
}

void SeededWorld::on_delivery(const lawn_durable_delivery_t &delivery)
{
    const int64_t now = store_.time_us();
    const auto timer =
        std::find_if(timers_.begin(), timers_.end(),
                     [&](const Timer &i) { return i.id == delivery.id; });
    if (timer == timers_.end()) {
        object("a delivery of a timer that nobody has started");
        return;
    }
    ++timer->deliveries;
    if (now < delivery.due_us || delivery.fired_us < delivery.due_us) {
        object("a delivery comes early");
    }
    if (delivery.attempt == 1 && delivery.deliveries == 1) {
        longest_lateness_us_ =
            std::max(longest_lateness_us_, now - delivery.due_us);
    }
}

// ---- The run.

void SeededWorld::add_timer(int64_t time_us, uint64_t delay_us)
{
    const uint64_t token = timers_.size() + 1;
    const bool is_stopped = network_.random(4) == 0;
    timers_.emplace_back();
    Timer *const timer = &timers_.back();
    timer->id = "timer-" + std::to_string(token);
    timer->token = token;
    timer->delay_us = delay_us;
    timer->is_stopped_at_once = is_stopped;
    timer->until_known = !is_stopped && network_.random(2) == 0;
    timer->durability = random_durability();
    if (!is_stopped && network_.random(4) == 0) {
        timer->new_delay_us = 1 + network_.random(100) * ms;
    }
    network_.at(time_us, [this, timer] {
        Request *const start = request(timer, Kind::start);
        if (!timer->is_stopped_at_once) {
            send(start);
            return;
        }
        Request *const stop = request(timer, Kind::stop);
        start->together = stop;
        stop->together = start;
        send(start);
        send(stop);
    });
}

// A few at any time, or many at once.
void SeededWorld::add_timers()
{
    const bool is_burst = !options_.is_prompt && network_.random(4) == 0;
    const uint64_t count =
        is_burst ? 8 + network_.random(8) : 1 + network_.random(4);
    const auto when = [this] {
        return network_.now() + static_cast<int64_t>(network_.random(200)) * ms;
    };
    const int64_t time = when();
    for (uint64_t i = 0; i < count; ++i) {
        add_timer(is_burst ? time : when(),
                  is_burst ? 0 : network_.random(100) * ms);
    }
    if (network_.random(4) == 0) {
        const uint64_t gone = network_.random(2) * 150;
        network_.at(when(), [this, gone] { store_.seek(gone); });
    }
}

bool SeededWorld::is_done() const
{
    return std::all_of(timers_.begin(), timers_.end(),
                       [](const Timer &i) { return i.is_acknowledged; }) &&
           std::all_of(requests_.begin(), requests_.end(),
                       [](const Request &i) { return i.is_answered; }) &&
           std::all_of(programs_.begin(), programs_.end(),
                       [](const SeededProgram &i) { return i.is_done(); }) &&
           store_.model().timers() == 0;
}

std::string SeededWorld::left() const
{
    std::string text;
    for (const Timer &i : timers_) {
        text += " " + i.id + (i.is_acknowledged ? "" : " (not acknowledged)") +
                ", delivered " + std::to_string(i.deliveries) + " times;";
    }
    for (const SeededProgram &i : programs_) {
        const char *const error = lawn_durable_error(i.client());
        text += " " + i.name() + ": " + (error ? error : "well") + ";";
    }
    return text + " in the store: " + std::to_string(store_.model().timers()) +
           " timers, " + std::to_string(store_.model().entries()) + " entries";
}

void SeededWorld::poll()
{
    for (SeededProgram &program : programs_) {
        unsigned rounds = 0;
        while (program.is_ready() && lawn_durable_poll(program.client()) > 0) {
            if (++rounds > most_rounds) {
                object(program.name() + " does not come to rest");
                return;
            }
        }
    }
}

int64_t SeededWorld::next_poll_us() const
{
    int64_t next = INT64_MAX;
    for (const SeededProgram &program : programs_) {
        next = std::min(next, program.next_poll_us());
    }
    return next;
}

void SeededWorld::run_until_done(int64_t limit_us)
{
    poll();
    while (objection_.empty() && !is_done()) {
        if (network_.now() >= limit_us) {
            object("it is not done in time:" + left());
            return;
        }
        go_on(limit_us);
    }
}

bool SeededWorld::is_well() const
{
    return std::all_of(programs_.begin(), programs_.end(),
                       [](const SeededProgram &i) { return i.is_well(); });
}

void SeededWorld::go_on(int64_t limit_us)
{
    network_.step(
        std::min(std::max(next_poll_us(), network_.now() + 1), limit_us));
    poll();
}

void SeededWorld::run_until_well(int64_t limit_us)
{
    while (objection_.empty() && !is_well()) {
        if (network_.now() >= limit_us) {
            object("somebody complains, and all is well:" + left());
            return;
        }
        go_on(limit_us);
    }
}

void SeededWorld::run_round()
{
    add_timers();
    if (options_.faults_permille != 0) {
        for (SeededProgram &program : programs_) {
            network_.at(network_.now() +
                            static_cast<int64_t>(network_.random(1000)) * ms,
                        [to = &program] { to->do_something(); });
        }
    }
    network_.at(faults_end_us_, [this] {
        network_.faults_permille = 0;
        if (is_healed_) {
            network_.heal();
        }
    });
    const int64_t soon =
        is_healthy_ || is_healed_ ? soon_us : soon_after_mute_us;
    run_until_done(faults_end_us_ + soon);
    // Faults may not be over, if all was done in spite of them.
    network_.step(faults_end_us_);
    network_.faults_permille = 0;
    faults_end_us_ = network_.now();
    add_timer(network_.now(), 0);
    run_until_done(network_.now() + soon);
    run_until_well(network_.now() + soon);
}

std::string SeededWorld::run()
{
    SeededProgram *const first = &programs_.front();
    if (options_.consumer_goes_us != 0) {
        network_.at(options_.consumer_goes_us,
                    [first] { first->close_consumer(); });
    }
    if (options_.pump_goes_us != 0) {
        network_.at(options_.pump_goes_us, [first] { first->close_pump(); });
    }
    run_round();
    for (unsigned i = 1; i < options_.rounds && objection_.empty(); ++i) {
        begin_faults();
        run_round();
    }
    return objection_;
}

} // namespace lawn_test
