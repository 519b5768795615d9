// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The list of paths; see path.h. The estimator of lawn/conn.h was designed on
// the first ten. Each of the others has something that retransmit timers are
// known to stumble over.

#include "rto/path.h"

#include <algorithm>

namespace bench::rto
{

namespace
{

// Hardly any jitter, as within a rack.
double steady(Random &random, const Moment & /*moment*/)
{
    return 1 + random.exponential(1. / 200);
}

double jitter(Random &random, const Moment & /*moment*/)
{
    return 1 + random.exponential(1. / 4);
}

double late(Random &random, double share, double by)
{
    return 1 + random.exponential(1. / 200) + (random.happens(share) ? by : 0);
}

double heavy_tail(Random &random, const Moment & /*moment*/)
{
    return 1 + .05 * std::min(400.0, std::pow(1 - random.uniform(), -1 / 1.2));
}

// Nothing is answered in the first `length` of each `period`.
double pause(double at, double period, double length)
{
    const double phase = std::fmod(at, period);
    return phase < length ? length - phase : 0;
}

// The logarithm goes up and down between 1 and 100 times the round trip.
double drift(Random &random, const Moment &moment)
{
    constexpr double period = 200'000;
    const double phase = std::fmod(moment.at, period) / period;
    const double height = phase < .5 ? 2 * phase : 2 - 2 * phase;
    return std::pow(100, height) * (1 + random.exponential(1. / 200));
}

std::vector<Path> first_paths()
{
    std::vector<Path> list(10);
    list[0] = {"steady", "hardly any jitter", steady};
    list[1] = {"jitter", "exponential, R/4 in the mean", jitter};
    list[2] = {
        "late-2%", "2 % are late by R/2",
        [](Random &random, const Moment &) { return late(random, .02, .5); }};
    list[3] = {
        "late-0.1%", "0.1 % are late by 3R",
        [](Random &random, const Moment &) { return late(random, .001, 3); }};
    list[4] = {"ack-delay", "half of the ACKs are late by up to R",
               [](Random &random, const Moment &) {
                   return 1 + (random.happens(.5) ? random.uniform() : 0);
               }};
    list[5] = {"heavy-tail", "Pareto, alpha 1.2, up to 21R", heavy_tail};
    list[5].rules.spurious = 10;
    list[5].rules.has_tail = true;
    list[6] = {"pauses-20", "no answer for 20R in each 2,000R",
               [](Random &random, const Moment &moment) {
                   return steady(random, moment) + pause(moment.at, 2000, 20);
               }};
    list[6].rules.spurious = 12;
    list[6].by_time = true;
    list[7] = {
        "pause-10000", "no answer for 10,000R, once",
        [](Random &random, const Moment &moment) {
            const bool is_in = moment.since >= 0 && moment.since < 10'000;
            return steady(random, moment) + (is_in ? 10'000 - moment.since : 0);
        }};
    list[7].rules.is_aside = true;
    list[8] = {"pauses-1000", "no answer for 1,000R, three times in 12,000R",
               [](Random &random, const Moment &moment) {
                   const bool is_in =
                       moment.since >= 0 && moment.since < 12'000;
                   return steady(random, moment) +
                          (is_in ? pause(moment.since, 4000, 1000) : 0);
               }};
    list[8].rules.is_aside = true;
    list[8].by_time = true;
    list[9] = {"steps", "R and 10R in turns, 2,000R each",
               [](Random &random, const Moment &moment) {
                   return (std::fmod(moment.at, 4000) < 2000 ? 1 : 10) +
                          random.exponential(1. / 100);
               }};
    list[9].rules.changes = true;
    list[9].by_time = true;
    return list;
}

Path path(const char *name, const char *what, Delay delay)
{
    Path result = {};
    result.name = name;
    result.what = what;
    result.delay = delay;
    return result;
}

void add_losses(std::vector<Path> &list)
{
    Path bursts =
        path("bursts", "what is lost is lost in bursts of 2R", jitter);
    bursts.loss = Loss::bursts;
    list.push_back(bursts);

    Path both = path("both-ways", "ACKs are lost as well", jitter);
    both.loss = Loss::both;
    list.push_back(both);

    Path outage = path("outage", "nothing arrives for 1,000R, once", steady);
    outage.outage = 1000;
    outage.out_of_order = false;
    outage.rules.is_aside = true;
    list.push_back(outage);

    Path silence =
        path("silence", "1,000,000R of silence, then a loss", steady);
    silence.loss = Loss::first;
    silence.silence = 1e6;
    silence.out_of_order = false;
    list.push_back(silence);
}

void add_reordering(std::vector<Path> &list)
{
    Path some = path(
        "reorder-1%", "1 % are late by R/4",
        [](Random &random, const Moment &) { return late(random, .01, .25); });
    some.in_order = false;
    list.push_back(some);

    Path many = path(
        "reorder-20%", "20 % are late by R/10",
        [](Random &random, const Moment &) { return late(random, .2, .1); });
    many.in_order = false;
    list.push_back(many);

    Path twice = path("duplicates", "2 % arrive twice", steady);
    twice.duplicates = .02;
    list.push_back(twice);

    // Two routes of unlike length, as of a flow that is spread by packet.
    Path asymmetric = path("asymmetric", "ACKs come on two routes",
                           [](Random &random, const Moment &) {
                               return .9 + random.exponential(1. / 200);
                           });
    asymmetric.back = [](Random &random, const Moment &) {
        return random.happens(.5) ? .1 : .4;
    };
    asymmetric.in_order = false;
    list.push_back(asymmetric);
}

void add_loops(std::vector<Path> &list)
{
    Path peer = path("late-peer", "the peer looks each 2R", jitter);
    peer.peer_poll = 2;
    peer.rules.round_trip = 2;
    list.push_back(peer);

    Path own = path("late-program", "the program looks each R/2", jitter);
    own.own_poll = .5;
    own.rules.round_trip = 1.5;
    list.push_back(own);

    Path every_other = path(
        "every-other", "a cumulative ACK for two packets, or R later", steady);
    every_other.ack_every = 2;
    every_other.ack_delay = 1;
    list.push_back(every_other);

    Path pause =
        path("own-pause", "the program is stopped for 10,000R, once", steady);
    pause.own_pause = 10'000;
    pause.out_of_order = false;
    pause.rules.is_aside = true;
    list.push_back(pause);

    Path at_once = path("at-once", "a window is sent in one pass", jitter);
    at_once.at_once = true;
    list.push_back(at_once);
}

void add_changes(std::vector<Path> &list)
{
    Path drifting = path("drift", "from R to 100R and back", drift);
    drifting.by_time = true;
    drifting.rules.changes = true;
    list.push_back(drifting);

    Path longer =
        path("longer", "ten times longer from one moment on",
             [](Random &random, const Moment &moment) {
                 return (moment.since >= 0 ? 10 : 1) * steady(random, moment);
             });
    longer.rules.changes = true;
    list.push_back(longer);

    Path shorter =
        path("shorter", "ten times shorter from one moment on",
             [](Random &random, const Moment &moment) {
                 return (moment.since >= 0 ? 1 : 10) * steady(random, moment);
             });
    shorter.rules.changes = true;
    list.push_back(shorter);

    list.push_back(path("slow-start", "the first round trip takes 50R",
                        [](Random &random, const Moment &moment) {
                            return moment.serial == 0 ? 50
                                                      : steady(random, moment);
                        }));
}

} // namespace

const std::vector<Path> &paths()
{
    static const std::vector<Path> list = [] {
        std::vector<Path> all = first_paths();
        add_losses(all);
        add_reordering(all);
        add_loops(all);
        add_changes(all);
        return all;
    }();
    return list;
}

const std::vector<Variant> &variants()
{
    static const std::vector<Variant> list = [] {
        std::vector<Variant> all;
        for (const Order order : {Order::kept, Order::any}) {
            for (const Path &each : paths()) {
                const bool is_kept = order == Order::kept;
                if (is_kept ? each.in_order : each.out_of_order) {
                    all.push_back(
                        {&each, order,
                         each.name + std::string(is_kept ? "" : "/any")});
                }
            }
        }
        return all;
    }();
    return list;
}

} // namespace bench::rto
