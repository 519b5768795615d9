// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// TCP as Linux has it, over this flow, on which each message is a segment and
// its ACK a selective one with a timestamp:
//   - The RTO with its 200 ms (tcp_rtt_estimator), which runs from the latest
//     progress and doubles in each silence.
//   - RACK (tcp_rack_detect_loss): its window is nothing as long as no
//     reordering was seen and three segments are acknowledged beyond the oldest
//     (DupThresh) or a recovery is under way; then min RTT / 4, more for each
//     round trip that showed a needless retransmission, up to SRTT.
//   - TLP (tcp_schedule_loss_probe): after 2 SRTT and two jiffies the latest
//     segment is sent again; if it is the only one, after 2 SRTT and 200 ms,
//     for its ACK may be a delayed one.
// Timers expire with jiffies. RACK also looks whenever an ACK comes. After an
// RTO, RACK sends what else is lost, in the place of slow start. Not simulated:
// the congestion window, and that min RTT is of five minutes.

#include "rto/flow.h"

#include <algorithm>
#include <cmath>

namespace bench::rto
{

namespace
{

constexpr double rto_min = 200. * millisecond;
constexpr double rto_max = 120. * second;
constexpr unsigned timeout_min = 2; // jiffies, TCP_TIMEOUT_MIN
constexpr uint32_t dup_threshold = 3;
constexpr unsigned persistence = 16; // recoveries that a wide window lasts

class Linux : public Contender
{
public:
    explicit Linux(unsigned hz) : jiffy(second / hz)
    {
    }

    void open(Flow &flow_, Tick /*now*/, Tick /*round_trip*/) override
    {
        flow = &flow_;
    }

    void sent(Tick now, Sending sending) override
    {
        if (oldest.at == never) {
            oldest = sending;
            progress = now;
        }
        latest = sending;
        schedule(now);
    }

    void acked(Tick now, Sending sending, Sending oldest_) override
    {
        has_reordered |= rack.at != never && sending.serial < rack.serial;
        const bool is_progress = oldest_.serial != oldest.serial;
        if (is_progress) {
            progress = now;
            backoff = 0;
            repeated = 0;
        }
        oldest = oldest_;
        is_recovering = is_recovering && oldest.serial <= recovery_end;
        hear(now, sending);
        schedule(now);
    }

    void echoed(Tick now, Sending sending) override
    {
        if (flow->is_cumulative() && sending.serial > oldest.serial) {
            ++repeated;
        } else if (now - widened_at > static_cast<Tick>(srtt)) {
            // A duplicate SACK, once in a round trip.
            steps = std::min(steps + 1, 255U);
            persists = persistence;
            widened_at = now;
        }
        hear(now, sending);
        schedule(now);
    }

    void resent(Tick now, Sending oldest_) override
    {
        oldest = oldest_;
        schedule(now);
    }

    Tick next() const override
    {
        return due;
    }

    void pass(Tick now) override;

private:
    enum class Timer { rto, reordering, probe };

    void measure(double trip);
    void hear(Tick now, Sending sending);
    void schedule(Tick now);
    void detect(Tick now);
    double window() const;

    // The jiffy in which a timer expires that is set now.
    Tick at_jiffy(Tick now, double wait) const
    {
        const double jiffies =
            std::ceil(std::max(wait, 0.) / static_cast<double>(jiffy));
        return (now / jiffy + std::max<Tick>(1, static_cast<Tick>(jiffies))) *
               jiffy;
    }

    double margin() const
    {
        return static_cast<double>(timeout_min * jiffy);
    }

    double rto() const
    {
        const double once =
            srtt == 0 ? double{second} : std::min(srtt + rttvar, rto_max);
        return std::min(std::ldexp(once, static_cast<int>(backoff)), rto_max);
    }

    // Since which time the oldest may be lost.
    double lost_at() const
    {
        return static_cast<double>(oldest.at) + rack_trip + window();
    }

    bool has_evidence() const
    {
        return rack.at != never && oldest.serial < rack.serial;
    }

    const Tick jiffy;
    Flow *flow = nullptr;
    Sending oldest;
    Sending latest;    // transmission of a new message
    Tick progress = 0; // when the oldest became the oldest, or an RTO
    Timer timer = Timer::rto;
    Tick due = never;
    unsigned backoff = 0;
    uint32_t repeated = 0; // ACKs of nothing new, where ACKs are cumulative
    Tick probed = 0;       // the latest message when a probe was sent

    Sending rack; // the latest transmission that is acknowledged
    double rack_trip = 0;
    double least_trip = 0;
    bool has_reordered = false;
    bool is_recovering = false;
    uint32_t recovery_end = 0;
    unsigned steps = 1;
    unsigned persists = 0;
    Tick widened_at = 0;

    double srtt = 0; // 0: nothing measured
    double deviation = 0;
    double worst_deviation = 0; // of this round trip
    double rttvar = 0;
    Tick measured_from = 0; // the round trip
};

// tcp_rtt_estimator(): falling round trips count for little, and the deviation
// decreases once in a round trip.
void Linux::measure(double trip)
{
    if (srtt == 0) {
        srtt = trip;
        deviation = trip / 2;
        rttvar = worst_deviation = std::max(2 * trip, rto_min);
        return;
    }
    const double error = trip - srtt;
    srtt += error / 8;
    const double growth = std::fabs(error) - deviation;
    deviation += error < 0 && growth > 0 ? growth / 32 : growth / 4;
    worst_deviation = std::max(worst_deviation, 4 * deviation);
    rttvar = std::max(rttvar, worst_deviation);
    if (progress > measured_from + static_cast<Tick>(srtt)) {
        rttvar -= std::max(0., rttvar - worst_deviation) / 4;
        measured_from = progress;
        worst_deviation = rto_min;
    }
}

void Linux::hear(Tick now, Sending sending)
{
    if (sending.at == never) {
        return;
    }
    const auto trip = static_cast<double>(now - sending.at);
    measure(trip);
    least_trip = least_trip == 0 ? trip : std::min(least_trip, trip);
    if (rack.at == never || sending.serial > rack.serial) {
        rack = sending;
        rack_trip = trip;
    }
}

double Linux::window() const
{
    const uint32_t beyond = flow->is_cumulative() ? repeated : flow->sacked();
    if (!has_reordered && (is_recovering || beyond >= dup_threshold)) {
        return 0;
    }
    return std::min(srtt, least_trip * steps / 4);
}

// Sets the one timer that a connection has.
void Linux::schedule(Tick now)
{
    if (oldest.at == never) {
        due = never;
        return;
    }
    const auto current = static_cast<double>(now);
    const double until_rto = static_cast<double>(progress) + rto() - current;
    if (has_evidence()) {
        timer = Timer::reordering;
        due = at_jiffy(now, lost_at() + margin() - current);
        return;
    }
    const bool may_probe =
        srtt != 0 && !is_recovering && backoff == 0 && probed < latest.at;
    timer = may_probe ? Timer::probe : Timer::rto;
    const double patience =
        2 * srtt + (flow->outstanding() == 1 ? rto_min : margin());
    due = at_jiffy(now, may_probe ? std::min(patience, until_rto) : until_rto);
}

void Linux::detect(Tick now)
{
    while (oldest.at != never && has_evidence() &&
           lost_at() <= static_cast<double>(now)) {
        if (!is_recovering) {
            is_recovering = true;
            recovery_end = latest.serial;
            persists -= persists != 0;
            steps = persists == 0 ? 1 : steps;
        }
        Lost lost;
        lost.before = now -
                      static_cast<Tick>(std::min(rack_trip + window(),
                                                 static_cast<double>(now))) +
                      1;
        lost.newest = rack.serial;
        flow->resend(now, lost);
    }
}

void Linux::pass(Tick now)
{
    flow->poll(now);
    detect(now);
    if (due > now) {
        return;
    }
    switch (timer) {
    case Timer::reordering:
        schedule(now);
        break;
    case Timer::probe:
        probed = latest.at;
        flow->resend_newest(now);
        break;
    case Timer::rto:
        ++backoff;
        progress = now;
        flow->resend(now);
        break;
    }
}

} // namespace

std::unique_ptr<Contender> make_linux()
{
    return std::make_unique<Linux>(1000);
}

std::unique_ptr<Contender> make_linux_250()
{
    return std::make_unique<Linux>(250);
}

} // namespace bench::rto
