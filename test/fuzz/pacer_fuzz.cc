// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Pacers with any numbers whatever: rates and bursts that none can have, times
// that jump and go back, and callbacks that do something to others. What they
// should do exactly is in test/unit/pacer; here, all their answers agree, and
// no more goes than burst and rate allow.

#include "input.h"

#include <lawn/pacer.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace
{

using fuzz::Input;

class Pacers
{
public:
    explicit Pacers(Input input) : input_(input)
    {
        FUZZ_CHECK(lawn_create(nullptr, &lawn_) == LAWN_OK);
    }

    void run()
    {
        while (!input_.is_empty() && ++work_ < fuzz::most_work) {
            step(input_.byte(), [this] { return input_.number(); });
            check_all();
        }
        for (Flow &flow : flows_) {
            lawn_pacer_stop(&flow.pacer);
        }
        FUZZ_CHECK(lawn_count(lawn_) == 0);
        FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        lawn_destroy(lawn_);
    }

private:
    static constexpr lawn_time_t last = LAWN_TIME_INFINITY - 2; // see timer.h

    struct Flow {
        lawn_pacer_t pacer = {}; // first
        Pacers *all = nullptr;
        uint64_t wanted = 0;
        // Since the rate was last set: what may have been taken.
        long double rate = 0; // bytes each tick; 0: none is set
        uint64_t burst = 0;
        uint64_t largest = 0;
        lawn_time_t since = 0;
        lawn_time_t latest = 0;
        long double taken = 0;
    };

    template <class Number> void step(unsigned op, Number number)
    {
        Flow *const flow = &flows_[op / 16 % 4];
        switch (op % 16) {
        case 0:
        case 1:
            init(flow, number(), number(), number());
            break;
        case 2:
        case 3:
            set_rate(flow, number(), number());
            break;
        case 4:
            force(flow, number());
            break;
        case 5:
            lawn_pacer_stop(&flow->pacer);
            FUZZ_CHECK(!lawn_pacer_is_waiting(&flow->pacer));
            break;
        case 6:
            yield(flow);
            break;
        case 7:
            now_ -= std::min(now_, number()); // the lawn's does not go back
            break;
        case 8:
        case 9:
            now_ += std::min(number(), last - now_);
            break;
        case 10:
        case 11:
            advance(op / 64);
            break;
        default:
            take(flow, number());
            break;
        }
    }

    // Half of them are numbers that somebody might mean.
    static double rate_from(uint64_t bits)
    {
        if (bits % 2 == 0) {
            return static_cast<double>(bits);
        }
        double rate;
        memcpy(&rate, &bits, sizeof(rate));
        return rate;
    }

    static bool is_possible(double rate, long double burst,
                            double ticks_per_sec)
    {
        const long double ticks =
            static_cast<long double>(ticks_per_sec) / rate;
        return rate > 0 && rate <= 9223372036854775808. &&
               ticks < 4294967296.L && burst * ticks <= 9223372036854775808.L;
    }

    // On the edge, rounding decides.
    void check_status(lawn_status_t status, double rate, uint64_t burst,
                      double ticks)
    {
        if (status == LAWN_OK) {
            FUZZ_CHECK(is_possible(rate, burst * .999L, ticks * .999));
        } else {
            FUZZ_CHECK(status == LAWN_ERR_INVALID_PARAM);
            FUZZ_CHECK(!is_possible(rate, burst * 1.001L, ticks * 1.001));
        }
    }

    void begin(Flow *flow, double rate, uint64_t burst)
    {
        flow->rate = rate / flow->pacer.ticks_per_sec;
        flow->burst = burst;
        flow->largest = 0;
        flow->since = flow->latest = now_;
        flow->taken = 0;
    }

    void init(Flow *flow, uint64_t rate_bits, uint64_t burst, uint64_t ticks)
    {
        lawn_pacer_params_t params = {};
        params.rate = rate_from(rate_bits);
        params.burst = burst;
        params.ticks_per_sec = static_cast<double>(ticks | 1);
        const bool was_waiting = lawn_pacer_is_waiting(&flow->pacer);
        const lawn_status_t status =
            lawn_pacer_init(&flow->pacer, lawn_, &params, on_ready);
        if (was_waiting) {
            FUZZ_CHECK(status == LAWN_ERR_BUSY);
            return;
        }
        check_status(status, params.rate, burst, params.ticks_per_sec);
        if (status == LAWN_OK) {
            flow->all = this;
            begin(flow, params.rate, burst);
            FUZZ_CHECK(lawn_pacer_allowance(&flow->pacer, now_) == burst);
        }
    }

    void set_rate(Flow *flow, uint64_t rate_bits, uint64_t burst)
    {
        const double rate = rate_from(rate_bits);
        const lawn_status_t status =
            lawn_pacer_set_rate(&flow->pacer, now_, rate, burst);
        if (!flow->pacer.lawn) {
            FUZZ_CHECK(status == LAWN_ERR_INVALID_PARAM);
            return;
        }
        check_status(status, rate, burst, flow->pacer.ticks_per_sec);
        if (status == LAWN_OK) {
            begin(flow, rate, burst);
            check_wait(flow);
        }
    }

    void force(Flow *flow, uint64_t bytes)
    {
        const uint64_t before = lawn_pacer_allowance(&flow->pacer, now_);
        lawn_pacer_force(&flow->pacer, now_, bytes);
        FUZZ_CHECK(!flow->pacer.lawn ||
                   flow->pacer.paid_at == LAWN_TIME_INFINITY ||
                   lawn_pacer_allowance(&flow->pacer, now_) ==
                       before - std::min(before, bytes));
    }

    void yield(Flow *flow)
    {
        lawn_pacer_yield(&flow->pacer, now_);
        flow->wanted = 0;
        FUZZ_CHECK(!flow->pacer.lawn || lawn_pacer_is_waiting(&flow->pacer));
    }

    void take(Flow *flow, uint64_t bytes)
    {
        lawn_pacer_t *const pacer = &flow->pacer;
        const bool may = !pacer->lawn || lawn_pacer_next(pacer, bytes) <= now_;
        const uint64_t allowance = lawn_pacer_allowance(pacer, now_);
        FUZZ_CHECK(lawn_pacer_take(pacer, now_, bytes) == may);
        if (!pacer->lawn) {
            return;
        }
        if (!may) {
            FUZZ_CHECK(bytes > allowance || bytes == 0);
            FUZZ_CHECK(lawn_pacer_is_waiting(pacer));
            flow->wanted = bytes;
            check_wait(flow);
            return;
        }
        // Or it is more than the burst, and nothing was owed.
        FUZZ_CHECK(bytes <= allowance || allowance == pacer->burst);
        check_sum(flow, bytes);
    }

    // Where the clock has gone back, from the earliest time to the latest.
    void check_sum(Flow *flow, uint64_t bytes)
    {
        flow->largest = std::max(flow->largest, bytes);
        flow->taken += bytes;
        flow->since = std::min(flow->since, now_);
        flow->latest = std::max(flow->latest, now_);
        const uint64_t most = std::max(flow->burst, flow->largest);
        const long double span = flow->latest - flow->since;
        FUZZ_CHECK(flow->taken <= (most + flow->rate * span) * (1 + 1e-9L));
    }

    // The timer is not before the time, and is not after it if nothing was
    // forced.
    void check_wait(const Flow *flow)
    {
        const lawn_pacer_t *const pacer = &flow->pacer;
        if (lawn_pacer_is_waiting(pacer)) {
            const lawn_time_t next = lawn_pacer_next(pacer, flow->wanted);
            const lawn_time_t deadline = lawn_timer_deadline(&pacer->timer);
            FUZZ_CHECK(deadline == next || next >= LAWN_TIME_INFINITY - 1);
        }
    }

    void advance(unsigned budget)
    {
        in_pass_ = true;
        lawn_advance(lawn_, now_, budget);
        in_pass_ = false;
        now_ = std::max(now_, lawn_now(lawn_));
    }

    static void on_ready(lawn_pacer_t *pacer, lawn_time_t now)
    {
        Flow *const flow = reinterpret_cast<Flow *>(pacer);
        Pacers *const all = flow->all;
        FUZZ_CHECK(all->in_pass_);
        FUZZ_CHECK(!lawn_pacer_is_waiting(pacer));
        FUZZ_CHECK(lawn_pacer_next(pacer, flow->wanted) <= now);
        all->now_ = now;
        if (++all->work_ < fuzz::most_work) {
            const unsigned op = all->input_.byte_at_end();
            if (op % 16 != 10 && op % 16 != 11) { // no pass in a pass
                all->step(op, [all] { return all->input_.number_at_end(); });
            }
        }
    }

    void check_all()
    {
        size_t waiting = 0;
        for (const Flow &flow : flows_) {
            waiting += lawn_pacer_is_waiting(&flow.pacer);
        }
        FUZZ_CHECK(lawn_count(lawn_) == waiting);
    }

    Input input_;
    lawn_t *lawn_ = nullptr;
    Flow flows_[4];
    lawn_time_t now_ = 0;
    bool in_pass_ = false;
    unsigned work_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Pacers(Input(data, size)).run();
    return 0;
}
