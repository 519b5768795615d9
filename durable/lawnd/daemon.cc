// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See daemon.h. Each delivery is answered to the store when its target has
// answered. If the daemon ends before that, another one delivers it again when
// the lease is over.

#include "daemon.h"
#include "target.h"

#include "src/handle.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace lawnd
{

using lawn::durable::Key;
using lawn::durable::Timer;

namespace
{

constexpr const char *group = "lawnd";
// More than targets can hold, so that there is always room for those that are
// quick, and for answers that are on their way to the store.
constexpr unsigned max_in_flight = 2048;
static_assert(max_in_flight > DeliveryLimits().posts + DeliveryLimits().queued);
// Longer than a post may wait for its turn, and then take.
constexpr uint64_t lease_us = 60000000;
constexpr uint64_t drain_timeout_us = 40000000;
constexpr int64_t full_delay_us = 1000000;
constexpr std::string_view stream_prefix = "stream:";

std::string_view target_text(const lawn_durable_delivery_t *delivery)
{
    return delivery->target ? delivery->target : "";
}

// A lease that nobody answered in was an attempt.
unsigned attempt_of(const lawn_durable_delivery_t &delivery)
{
    return delivery.attempt + delivery.deliveries - 1;
}

bool begins_with(std::string_view text, std::string_view prefix)
{
    return text.substr(0, prefix.size()) == prefix;
}

// Without what may be a secret: a user, a path, a query. What is no URL may be
// one as a whole.
std::string place_of(std::string_view target)
{
    if (begins_with(target, stream_prefix)) {
        return std::string(target);
    }
    const std::string place = target_of(std::string(target));
    return place.empty() ? "(no URL)" : place.substr(place.find("//") + 2);
}

// The shard of this namespace that the key's hash tag names, or -1.
int shard_of_key(std::string_view key, const std::string &name_space,
                 unsigned shards)
{
    const std::string head = "{" + name_space + ":";
    if (!begins_with(key, head)) {
        return -1;
    }
    key.remove_prefix(head.size());
    const std::string digits(key.substr(0, key.find('}')));
    if (digits.size() == key.size() || digits.empty() || digits.size() > 4 ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
        return -1;
    }
    const int shard = atoi(digits.c_str());
    return static_cast<unsigned>(shard) < shards &&
                   digits == std::to_string(shard)
               ? shard
               : -1;
}

// One line when `line`, which may be NULL, is another than that told last.
void report_change(const char *line, std::string *told, const char *before,
                   const char *behind, const char *end)
{
    const std::string text = line ? line : "";
    if (text != *told) {
        log_line(line ? before + text + behind : end);
        *told = text;
    }
}

} // namespace

Daemon::Daemon(const Options &options) : options_(options)
{
    if (loop_.open() != LAWN_OK) {
        throw std::runtime_error(std::string("cannot poll: ") +
                                 strerror(errno));
    }
    block_signals();
    scraper_ = std::make_unique<Scraper>(
        loop_,
        [this](const std::vector<Shard> &shards) { return metrics(shards); });
    drain_timer_ = std::make_unique<Timer>(loop_, [this] {
        log_line("ends, though deliveries are under way: others will have them "
                 "when their lease is over");
        has_ended_ = true;
    });
    delivery_ = std::make_unique<Delivery>(loop_, DeliveryLimits());
    delivery_->told = [this](const std::string &target, bool is_silent) {
        hangs_.add(target + (is_silent ? " does not answer in time, and gets "
                                         "one post at a time until it does"
                                       : " answers again"));
    };
    if (!options_.listen.empty()) {
        server_ = std::make_unique<HttpServer>(
            loop_, options_.listen,
            [this](std::string_view path, HttpReply reply) {
                serve(path, std::move(reply));
            });
    }
    try {
        open_store();
    } catch (...) {
        lawn_durable_close(durable_);
        close(signal_fd_);
        throw;
    }
}

Daemon::~Daemon()
{
    delivery_.reset(); // it has views of the consumer's deliveries
    // Closing calls those who wait for answers, when these are gone already.
    consumer_ = nullptr;
    pump_ = nullptr;
    if (durable_) {
        loop_.forget(lawn_durable_fd(durable_), &durable_wake_);
    }
    lawn_durable_close(durable_);
    server_.reset();
    loop_.forget(signal_fd_, &signal_wake_);
    close(signal_fd_);
}

void Daemon::block_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0 || !loop_.watch(signal_fd_, &signal_wake_, EPOLLIN)) {
        throw std::runtime_error(std::string("cannot wait for signals: ") +
                                 strerror(errno));
    }
}

void Daemon::open_store()
{
    lawn_durable_params_t params = {};
    params.url = options_.url.c_str();
    params.name_space = options_.name_space.c_str();
    params.shards = options_.shards;
    params.require_safe_store = options_.require_safe_store;
    if (lawn_durable_open(&params, &durable_) != LAWN_OK) {
        durable_ = nullptr;
        throw std::runtime_error(lawn_durable_open_error());
    }
    if (!loop_.watch(lawn_durable_fd(durable_), &durable_wake_, EPOLLIN)) {
        throw std::runtime_error("cannot watch the store's connections");
    }
    // The first answer shows that the store can be reached, and takes us.
    const lawn_status_t status = lawn_durable_stats(
        durable_,
        [](void *arg, const lawn_durable_stats_t *stats) {
            auto *const self = static_cast<Daemon *>(arg);
            const char *const error = lawn_durable_error(self->durable_);
            // One broken shard is no reason not to fire the others.
            const bool is_partial = stats->status == LAWN_ERR_CORRUPT &&
                                    lawn_durable_shards(self->durable_) > 0;
            if (stats->status == LAWN_OK || is_partial) {
                self->begin();
            } else if (!self->is_ready_) {
                self->refusal_ = error ? error
                                 : stats->error
                                     ? stats->error
                                     : lawn_status_string(stats->status);
            }
        },
        this);
    if (status != LAWN_OK) {
        throw std::runtime_error(lawn_status_string(status));
    }
}

// Once the store has been reached.
void Daemon::begin()
{
    if (is_draining_) {
        return;
    }
    lawn_durable_pump_params_t pump = {};
    pump.prefetch_us = options_.prefetch_us;
    lawn_durable_consume_t consume = {};
    consume.group = group;
    consume.pushes = true;
    consume.max_in_flight = max_in_flight;
    consume.lease_us = lease_us;
    lawn_status_t status = lawn_durable_pump_start(durable_, &pump, &pump_);
    if (status == LAWN_OK) {
        status = lawn_durable_consume(
            durable_, &consume,
            [](void *arg, const lawn_durable_delivery_t *delivery) {
                static_cast<Daemon *>(arg)->deliver(delivery);
            },
            this, &consumer_);
    }
    if (status != LAWN_OK) {
        refusal_ = std::string("cannot start: ") + lawn_status_string(status);
        return;
    }
    is_ready_ = true;
    const unsigned shards = lawn_durable_shards(durable_);
    log_line("fires the timers of " + options_.name_space + ", " +
             std::to_string(shards) + (shards == 1 ? " shard" : " shards"));
}

void Daemon::run()
{
    if (server_) {
        log_line("listens on http://" + server_->address());
    }
    while (!has_ended_ && refusal_.empty()) {
        loop_.wait(UINT64_MAX);
        poll();
    }
    if (!refusal_.empty()) {
        throw std::runtime_error(refusal_);
    }
    log_line("ended");
}

void Daemon::poll()
{
    lawn_durable_poll(durable_);
    take_signals();
    report_store();
    // What the store does not do although it is well.
    report_change(lawn_durable_warning(durable_), &warned_, "warning: ", "",
                  "there is no warning any more");
    report_change(lawn_durable_losses(durable_), &lost_, "",
                  "; `lawnctl acknowledge` ends this error",
                  "the loss of timers was acknowledged");
    has_ended_ = has_ended_ || (is_draining_ && is_drained());
}

void Daemon::take_signals()
{
    signalfd_siginfo info = {};
    while (read(signal_fd_, &info, sizeof(info)) ==
           static_cast<ssize_t>(sizeof(info))) {
        if (is_draining_) {
            log_line("ends at once, because it was told so twice");
            has_ended_ = true;
        } else {
            begin_drain();
        }
    }
}

// Fires no more and takes no more. What waits for a target goes back, and what
// is being posted ends.
void Daemon::begin_drain()
{
    is_draining_ = true;
    log_line("ends; posts under way: " + std::to_string(delivery_->posting()));
    if (pump_) {
        lawn_durable_pump_query(pump_, &pumped_);
        lawn_durable_pump_close(pump_);
        pump_ = nullptr;
    }
    if (consumer_) {
        lawn_durable_consumer_stop(consumer_);
    }
    delivery_->drain();
    drain_timer_->start_after(drain_timeout_us);
}

// What is given back, and the word that the pump leaves, are requests, too.
// They do not matter enough to wait for a store that cannot be reached.
bool Daemon::is_drained() const
{
    return (durable_->link->requests() == 0 || durable_->link->error()) &&
           delivery_->posting() == 0 && publishing_ == 0 &&
           (!consumer_ || lawn_durable_consumer_in_flight(consumer_) == 0);
}

// One line when something goes wrong, and one when it is well again. What keeps
// it from a shard often is the same for all shards, and is one line.
void Daemon::report_store()
{
    const char *const error = lawn_durable_error(durable_);
    const std::string line = error ? error : "";
    const bool is_partial = error && !durable_->link->error();
    if (!is_ready_ || line == reported_ ||
        (is_partial && is_partial_ && !reported_.empty())) {
        return;
    }
    log_line(error         ? line
             : is_partial_ ? "the trouble is over"
                           : "the store answers again");
    reported_ = line;
    is_partial_ = is_partial;
}

void Daemon::deliver(const lawn_durable_delivery_t *delivery)
{
    if (begins_with(target_text(delivery), stream_prefix)) {
        publish(delivery);
    } else {
        post(delivery);
    }
}

void Daemon::post(const lawn_durable_delivery_t *delivery)
{
    Post post;
    post.url = target_text(delivery);
    post.id = delivery->id;
    post.generation = delivery->generation;
    post.attempt = attempt_of(*delivery);
    post.due_us = delivery->due_us;
    post.payload = {static_cast<const char *>(delivery->payload),
                    delivery->payload_size};
    post.finished = [this, delivery](const Outcome &outcome) {
        answer(delivery, outcome, &http_);
    };
    delivery_->submit(std::move(post));
}

// Keys like {ns:3}:out, or 1{ns:3}:out in database 1, are the store's own. In a
// Cluster the hash tag of a shard says which node has the stream; other keys
// would need a way of their own.
void Daemon::publish(const lawn_durable_delivery_t *delivery)
{
    const std::string key(target_text(delivery).substr(stream_prefix.size()));
    std::string_view name = key;
    name.remove_prefix(
        std::min(name.find_first_not_of("0123456789"), name.size()));
    const std::string own = "{" + options_.name_space + ":";
    const int shard =
        shard_of_key(key, options_.name_space, durable_->link->shards());
    const char *error = nullptr;
    if (key.empty() ||
        (begins_with(name, own) && name.find("}:") != name.npos)) {
        error = "not a stream that may be appended to";
    } else if (durable_->link->is_cluster() && shard < 0) {
        error = "in a Redis Cluster, the stream needs the hash tag of a shard";
    }
    if (error) {
        answer(delivery, {Verdict::fail, -1, error}, &stream_);
        return;
    }
    ++publishing_;
    durable_->link->command(
        shard < 0 ? 0 : static_cast<unsigned>(shard),
        {"XADD", key, "*", "id", delivery->id, "generation",
         std::to_string(delivery->generation), "due",
         std::to_string(delivery->due_us), "fired",
         std::to_string(delivery->fired_us), "attempt",
         std::to_string(attempt_of(*delivery)), "payload",
         std::string(static_cast<const char *>(delivery->payload),
                     delivery->payload_size)},
        [this, delivery](const lawn::durable::Answer &got) {
            --publishing_;
            Outcome outcome = {Verdict::done, -1, ""};
            if (got.status == LAWN_ERR_NO_MEMORY) {
                // The store is full, which is not for the timer to pay for.
                outcome = {Verdict::defer, full_delay_us, got.error};
            } else if (got.status != LAWN_OK) {
                outcome = {Verdict::again, -1, got.error};
            }
            answer(delivery, outcome, &stream_);
        });
}

void Daemon::answer(const lawn_durable_delivery_t *delivery,
                    const Outcome &outcome, Deliveries *deliveries)
{
    lawn_durable_answer_t answer = LAWN_DURABLE_RETRY;
    switch (outcome.verdict) {
    case Verdict::done:
        ++deliveries->done;
        answer = LAWN_DURABLE_DONE;
        break;
    case Verdict::again:
        ++deliveries->retried;
        break;
    case Verdict::defer:
        ++deliveries->deferred;
        answer = LAWN_DURABLE_DEFER;
        break;
    case Verdict::fail:
        ++deliveries->failed;
        rejections_.add("failed " + std::string(delivery->id) + ", target " +
                        place_of(target_text(delivery)) + ": " + outcome.error);
        answer = LAWN_DURABLE_REJECT;
        break;
    }
    if (!consumer_) {
        return; // the daemon is being destroyed
    }
    const uint64_t delay = outcome.delay_us < 0
                               ? LAWN_DURABLE_BACKOFF
                               : static_cast<uint64_t>(outcome.delay_us);
    // Without memory for the answer, the delivery comes again after its lease.
    lawn_durable_answer(consumer_, delivery, answer, delay,
                        outcome.error.empty() ? nullptr : outcome.error.c_str(),
                        nullptr, nullptr);
}

void Daemon::serve(std::string_view path, HttpReply reply)
{
    if (path == "/metrics") {
        serve_metrics(std::move(reply));
    } else if (path == "/healthz") {
        serve_health(reply);
    } else {
        HttpAnswer none;
        none.status = 404;
        none.body = "There are /metrics and /healthz.\n";
        reply(none);
    }
}

void Daemon::serve_health(const HttpReply &reply)
{
    const char *const error = lawn_durable_error(durable_);
    HttpAnswer health;
    health.body = "ok\n";
    if (!warned_.empty()) {
        health.body += "warning: " + warned_ + "\n";
    }
    if (error || !is_ready_ || is_draining_ || !lost_.empty()) {
        health.status = 503;
        health.body = std::string(error            ? error
                                  : !lost_.empty() ? lost_.c_str()
                                  : is_draining_   ? "ending"
                                                   : "starting") +
                      "\n";
    }
    reply(health);
}

// While a server alone cannot be reached, it need not be asked.
void Daemon::serve_metrics(HttpReply reply)
{
    const bool is_down =
        durable_->link->error() && !durable_->link->is_cluster();
    scraper_->serve(is_ready_ && !is_down ? durable_ : nullptr,
                    std::move(reply));
}

std::string Daemon::metrics(const std::vector<Shard> &shards) const
{
    Metrics metrics;
    metrics.name_space = options_.name_space;
    metrics.is_store_up = is_ready_ && !durable_->link->error();
    metrics.shards = shards;
    metrics.pump = pumped_;
    if (pump_) {
        lawn_durable_pump_query(pump_, &metrics.pump);
    }
    metrics.http = http_;
    metrics.stream = stream_;
    metrics.posting = delivery_ ? delivery_->posting() : 0;
    metrics.waiting = delivery_ ? delivery_->waiting() : 0;
    metrics.silent = delivery_ ? delivery_->silent() : 0;
    metrics.warns = !warned_.empty();
    metrics.has_losses = !lost_.empty();
    metrics.lost = consumer_ ? lawn_durable_consumer_lost(consumer_) : 0;
    return format_metrics(metrics);
}

} // namespace lawnd
