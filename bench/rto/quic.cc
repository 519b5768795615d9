// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// QUIC's loss detection as RFC 9002 recommends it, in its appendix A. A packet
// number is the serial number of a transmission. The probes of a PTO are
// retransmissions of the oldest message, one each. Not simulated: an ACK delay
// that the peer reports, and with it max_ack_delay, and the congestion window.

#include "rto/flow.h"

#include <algorithm>
#include <cmath>

namespace bench::rto
{

namespace
{

constexpr uint32_t packet_threshold = 3;
constexpr double time_threshold = 9. / 8;
constexpr double granularity = millisecond;
constexpr double initial_trip = 333. * millisecond;
constexpr unsigned most_backoff = 16; // so that the shift stays defined

class Quic : public Contender
{
public:
    void open(Flow &flow_, Tick /*now*/, Tick /*round_trip*/) override
    {
        flow = &flow_;
    }

    void sent(Tick now, Sending sending) override
    {
        last_sent = now;
        if (oldest.at == never) {
            oldest = sending;
        }
    }

    void acked(Tick now, Sending sending, Sending oldest_) override
    {
        oldest = oldest_;
        echoed(now, sending);
    }

    // A transmission of a message that is acknowledged already is a packet like
    // others.
    void echoed(Tick now, Sending sending) override
    {
        pto_count = 0;
        // Only the largest packet number is measured (5.1).
        if (sending.at != never &&
            (largest.at == never || sending.serial > largest.serial)) {
            largest = sending;
            measure(static_cast<double>(now - sending.at));
        }
    }

    void resent(Tick now, Sending oldest_) override
    {
        last_sent = now;
        oldest = oldest_;
    }

    Tick next() const override
    {
        if (oldest.at == never) {
            return never;
        }
        if (is_behind()) {
            return oldest.serial + packet_threshold <= largest.serial
                       ? oldest.at
                       : oldest.at + threshold();
        }
        const double timeout =
            srtt == 0 ? initial_trip + std::max(2 * initial_trip, granularity)
                      : srtt + std::max(4 * rttvar, granularity);
        const double factor =
            static_cast<double>(1U << std::min(pto_count, most_backoff));
        return last_sent + static_cast<Tick>(timeout * factor);
    }

    void pass(Tick now) override
    {
        flow->poll(now);
        while (next() <= now) {
            if (is_behind()) {
                const Tick age = threshold();
                Lost lost;
                lost.before = now >= age ? now - age + 1 : 0;
                lost.newest = largest.serial;
                lost.number = largest.serial + 1 -
                              std::min(packet_threshold, largest.serial + 1);
                flow->resend(now, lost);
            } else {
                ++pto_count;
                flow->resend(now);
            }
        }
    }

private:
    // A later packet than the oldest is acknowledged.
    bool is_behind() const
    {
        return largest.at != never && oldest.serial < largest.serial;
    }

    Tick threshold() const
    {
        return static_cast<Tick>(
            std::max(time_threshold * std::max(srtt, latest), granularity));
    }

    void measure(double trip)
    {
        latest = trip;
        if (srtt == 0) {
            srtt = trip;
            rttvar = trip / 2;
        } else {
            rttvar += (std::fabs(srtt - trip) - rttvar) / 4;
            srtt += (trip - srtt) / 8;
        }
    }

    Flow *flow = nullptr;
    Sending oldest;
    Sending largest; // acknowledged
    Tick last_sent = 0;
    unsigned pto_count = 0;
    double srtt = 0; // 0: nothing measured
    double rttvar = 0;
    double latest = 0;
};

} // namespace

std::unique_ptr<Contender> make_quic()
{
    return std::make_unique<Quic>();
}

} // namespace bench::rto
