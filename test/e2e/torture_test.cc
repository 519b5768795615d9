// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Torture: pairs of ping-pongs run, one after the other, while the weather on
// their wire changes every second, their link flaps, and they are stopped,
// continued and killed, all at random. Whatever happens: nothing is lost,
// nothing comes twice, no timer fires early, nobody who lives is taken for
// dead, everybody who is dead is found to be, and memory stays flat.
//
//     LAWN_TORTURE_SECONDS=n  how long, all tests together (72)
//     LAWN_TORTURE_SEED=n     of all that is drawn (1)
//
// Every test prints its seed and what it does when. The same seed draws the
// same again, in the same order; the programs meet it at their own pace.

#include "footprint.h"
#include "softroce_fixture.h"
#include "weather.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace
{

using namespace e2e;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *const text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

constexpr unsigned tests = 4;
const uint64_t seed = from_environment("LAWN_TORTURE_SEED", 1);
const milliseconds time_per_test(
    std::max<uint64_t>(from_environment("LAWN_TORTURE_SECONDS", 72), 20) *
    1000 / tests);

// So few that the processor is not what they wait for.
constexpr unsigned pairs = 64;

// The worst weather must kill nobody. Where 40 % are lost each way, 64 % of the
// round trips fail: that 30 probes bring no answer has a probability of 1e-6,
// and that nothing of the peer's own, a quarter of a second apart at most,
// comes through in those 6 s, below 1e-9. Stops (1.5 s at most) and flaps
// (0.8 s) take a part of that time, but the weather is seldom so bad, and never
// for long. A send is tried again for a minute.
const Arguments stormproof = {"--rto-max",
                              "250ms",
                              "--peer-timeout",
                              "60s",
                              "--keepalive",
                              "500ms,200ms,30",
                              "--keepalive-jitter",
                              "500ms",
                              "--wait",
                              "20s"};
constexpr double probes = 30;
constexpr double earliest_death = 0.5 + probes * 0.2;
constexpr double latest_death = earliest_death + 0.5; // jitter

constexpr Climate foul = {40, 60, 20, 50, 2};

// RC retransmits in hardware, 6 times within 0.47 s, and then is lost: hence no
// outage, no delay near its timeout of 67 ms, and few losses. And its programs
// sleep: here the hardware is software, which two that poll would starve.
constexpr Climate bearable = {2, 2, 5, 0, 20};

enum class Fault { none, flap, stop_client, stop_server, stop_both };
using Faults = std::vector<Fault>;

const Faults all_faults = {Fault::none, Fault::flap, Fault::stop_client,
                           Fault::stop_server, Fault::stop_both};

class Torture : public SoftRoce
{
protected:
    Torture() : random_(seed), weather_(random_)
    {
        printf("LAWN_TORTURE_SEED=%llu\n",
               static_cast<unsigned long long>(seed));
    }

    void TearDown() override
    {
        printf("%u runs, %u weather changes, %u flaps, %u stops, %u kills, "
               "%.0f delivered, %.0f retransmissions, %.0f duplicates\n",
               runs_, changes_, flaps_, stops_, kills_, delivered_,
               retransmissions_, duplicates_);
        EXPECT_GT(runs_, 0U);
        EXPECT_GT(changes_, 0U);
        EXPECT_GT(delivered_, 0);
    }

    void tell(const std::string &what) const
    {
        const std::chrono::duration<double> elapsed = Clock::now() - started_;
        printf("%8.2f s  %s\n", elapsed.count(), what.c_str());
    }

    void begin(const Arguments &options, uint64_t iterations)
    {
        ++runs_;
        tell("run " + std::to_string(runs_));
        Footprint::count_allocations(true);
        run(stormproof + options +
            Arguments{"--connections", std::to_string(pairs), "--iters",
                      std::to_string(iterations)});
        Footprint::count_allocations(false);
        wait_until_under_way();
        of_client_ = std::make_unique<Footprint>(client_->pid());
        of_server_ = std::make_unique<Footprint>(server_->pid());
        // What torments them must not wait for a processor that they poll on.
        for (const Process *process : {client_.get(), server_.get()}) {
            setpriority(PRIO_PROCESS, static_cast<id_t>(process->pid()), 10);
        }
    }

    void expect_flat_and_tally(Process &process, Footprint &footprint)
    {
        footprint.expect_flat();
        delivered_ += process.number("delivered");
        retransmissions_ += process.number("retransmissions");
        duplicates_ += process.number("duplicates received");
    }

    // The storm is over: all that was begun comes to its end.
    void finish(uint64_t iterations)
    {
        weather_.clear();
        tell("clear");
        client_->wait(600);
        server_->wait(600);
        expect_both_succeed(static_cast<double>(pairs * iterations));
        for (const Process *process : {client_.get(), server_.get()}) {
            EXPECT_LE(process->number("max per connection on resume"), 1);
        }
        expect_flat_and_tally(*client_, *of_client_);
        expect_flat_and_tally(*server_, *of_server_);
    }

    void stop(const std::vector<Process *> &processes, milliseconds span)
    {
        stops_ += static_cast<unsigned>(processes.size());
        for (const Process *process : processes) {
            process->signal(SIGSTOP);
        }
        std::this_thread::sleep_for(span);
        for (const Process *process : processes) {
            process->signal(SIGCONT);
        }
    }

    void make(Fault fault)
    {
        const milliseconds outage(draw(random_, 50, 800));
        const milliseconds span(draw(random_, 50, 1500));
        const std::string during = std::to_string(span.count()) + " ms";
        switch (fault) {
        case Fault::none:
            break;
        case Fault::flap:
            tell("link down for " + std::to_string(outage.count()) + " ms");
            ++flaps_;
            weather_.flap(outage);
            break;
        case Fault::stop_client:
            tell("client stopped for " + during);
            stop({client_.get()}, span);
            break;
        case Fault::stop_server:
            tell("server stopped for " + during);
            stop({server_.get()}, span);
            break;
        case Fault::stop_both:
            tell("both stopped for " + during);
            stop({client_.get(), server_.get()}, span);
            break;
        }
    }

    // For as long as `span`, or until both have ended. Every fault has its
    // turn before any comes again. Returns how long it was.
    milliseconds storm(const Climate &climate, const Faults &faults,
                       milliseconds span)
    {
        const auto start = Clock::now();
        Faults left;
        while (Clock::now() < start + span &&
               (!client_->poll_exit() || !server_->poll_exit())) {
            tell(weather_.change(climate));
            ++changes_;
            std::this_thread::sleep_for(milliseconds(draw(random_, 200, 900)));
            if (left.empty()) {
                left = faults;
                std::shuffle(left.begin(), left.end(), random_);
            }
            make(left.back());
            left.pop_back();
            of_client_->look();
            of_server_->look();
        }
        return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    }

    // One run after the other, each of so many messages that it lasts about as
    // long as the test in bad weather. How long a start takes is not counted.
    void survive(const Climate &climate, const Faults &faults,
                 const Arguments &options)
    {
        auto left = time_per_test;
        const uint64_t iterations = 200 * left.count() / 1000 / pairs;
        while (left > milliseconds(0)) {
            begin(options, iterations);
            left -= storm(climate, faults, left);
            finish(iterations);
        }
    }

    void kill_one(bool is_client);
    void expect_all_found_dead(Process &survivor);

    const Clock::time_point started_ = Clock::now();
    Random random_;
    Weather weather_;
    std::unique_ptr<Footprint> of_client_;
    std::unique_ptr<Footprint> of_server_;
    unsigned runs_ = 0;
    unsigned changes_ = 0;
    unsigned flaps_ = 0;
    unsigned stops_ = 0;
    unsigned kills_ = 0;
    double delivered_ = 0;
    double retransmissions_ = 0;
    double duplicates_ = 0;
};

// Only the victim is stopped beforehand: how late the survivor's timers have
// been at most is how late each expiry on the way to a verdict may be.
void Torture::kill_one(bool is_client)
{
    begin({}, 1'000'000);
    storm(foul,
          {Fault::flap, is_client ? Fault::stop_client : Fault::stop_server},
          milliseconds(draw(random_, 500, 3000)));
    tell(is_client ? "client killed" : "server killed");
    ++kills_;
    Process &victim = is_client ? *client_ : *server_;
    Process &survivor = is_client ? *server_ : *client_;
    victim.signal(SIGKILL);
    storm(foul, {Fault::none, Fault::flap}, std::chrono::seconds(60));
    EXPECT_EQ(victim.wait(), 128 + SIGKILL);
    expect_all_found_dead(survivor);
    expect_flat_and_tally(survivor, is_client ? *of_server_ : *of_client_);
    weather_.clear();
}

void Torture::expect_all_found_dead(Process &survivor)
{
    EXPECT_EQ(survivor.wait(), peer_dead);
    EXPECT_EQ(survivor.number("dead connections"), pairs);
    EXPECT_EQ(survivor.number("dead by keepalive"), pairs);
    EXPECT_EQ(survivor.number("early firings"), 0);
    EXPECT_NE(survivor.summary("delivered").find("in order, exactly once"),
              std::string::npos);
    EXPECT_GE(survivor.number("death found min"), earliest_death);
    EXPECT_LE(survivor.number("death found max"),
              latest_death + survivor.death_delay(probes, 0.2));
}

TEST_F(Torture, UdSurvives)
{
    survive(foul, all_faults, {});
    EXPECT_GT(retransmissions_, 0);
    EXPECT_GT(duplicates_, 0);
}

TEST_F(Torture, UdAsleepSurvives)
{
    survive(foul, all_faults, {"--events"});
    EXPECT_GT(retransmissions_, 0);
    EXPECT_GT(duplicates_, 0);
}

TEST_F(Torture, RcSurvives)
{
    survive(
        bearable,
        {Fault::none, Fault::stop_client, Fault::stop_server, Fault::stop_both},
        {"--mode", "rc", "--events"});
}

TEST_F(Torture, DeathIsFound)
{
    const auto end = Clock::now() + time_per_test;
    while (Clock::now() < end) {
        kill_one(draw(random_, 0, 1) != 0);
    }
    EXPECT_GT(kills_, 0U);
}

} // namespace
