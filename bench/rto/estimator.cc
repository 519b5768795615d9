// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The simple contenders. Their timer runs from the oldest unacknowledged
// transmission, or from the latest expiry if nothing was heard since: one
// message for each silence, whatever the window (RFC 6298, 5.4 to 5.6). They
// differ in how long they wait.

#include "rto/flow.h"

#include <algorithm>
#include <cmath>

namespace bench::rto
{

namespace
{

constexpr double most_backoff = 64;

class Estimator : public Contender
{
public:
    void open(Flow &flow_, Tick /*now*/, Tick /*round_trip*/) override
    {
        flow = &flow_;
    }

    void sent(Tick /*now*/, Sending sending) override
    {
        if (oldest.at == never) {
            oldest = sending;
            arm();
        }
    }

    void acked(Tick now, Sending sending, Sending oldest_) override
    {
        // Without a sample, a back-off stays (Karn).
        backoff = sending.at != never ? 1 : backoff;
        oldest = oldest_;
        echoed(now, sending);
    }

    void echoed(Tick now, Sending sending) override
    {
        if (sending.at != never) {
            sample(static_cast<double>(now - sending.at));
        }
        silence = 0;
        arm();
    }

    void resent(Tick /*now*/, Sending oldest_) override
    {
        oldest = oldest_;
        arm();
    }

    Tick next() const override
    {
        return due;
    }

    void pass(Tick now) override
    {
        flow->poll(now);
        while (due <= now) {
            backoff = std::min(most_backoff, backoff * 2);
            silence = now;
            flow->resend(now);
        }
    }

protected:
    virtual double rto() const = 0;

    double srtt = 0; // 0: nothing measured
    double rttvar = 0;

private:
    void sample(double trip)
    {
        if (srtt == 0) {
            srtt = trip;
            rttvar = trip / 2;
        } else {
            rttvar += (std::fabs(trip - srtt) - rttvar) / 4;
            srtt += (trip - srtt) / 8;
        }
    }

    void arm()
    {
        due = oldest.at == never ? never
                                 : std::max(oldest.at, silence) +
                                       static_cast<Tick>(rto() * backoff);
    }

    Flow *flow = nullptr;
    Sending oldest;
    Tick silence = 0; // the latest expiry; 0: something was heard since
    Tick due = never;
    double backoff = 1;
};

// Whatever the path is like.
class Fixed : public Estimator
{
public:
    explicit Fixed(Tick rto) : fixed(static_cast<double>(rto))
    {
    }

protected:
    double rto() const override
    {
        return fixed;
    }

private:
    double fixed;
};

// RFC 6298, with the granularity of a clock that is read at each pass.
class Rfc6298 : public Estimator
{
public:
    explicit Rfc6298(Tick least) : least_rto(static_cast<double>(least))
    {
    }

protected:
    double rto() const override
    {
        if (srtt == 0) {
            return std::max(least_rto, double{second});
        }
        return std::max(least_rto,
                        srtt + std::max(double{microsecond}, 4 * rttvar));
    }

private:
    double least_rto;
};

// The local ACK timeout of an InfiniBand queue pair, 4.096 us * 2^n, as
// somebody sets it who knows the round trip: the least class of at least four
// round trips. This is kinder than a device, which may wait for up to four
// times as long, and does not back off.
class Infiniband : public Estimator
{
public:
    void open(Flow &flow, Tick now, Tick round_trip) override
    {
        Estimator::open(flow, now, round_trip);
        while (timeout < 4 * static_cast<double>(round_trip)) {
            timeout *= 2;
        }
    }

protected:
    double rto() const override
    {
        return timeout;
    }

private:
    double timeout = 4096;
};

} // namespace

std::unique_ptr<Contender> make_fixed(Tick rto)
{
    return std::make_unique<Fixed>(rto);
}

std::unique_ptr<Contender> make_rfc6298()
{
    return std::make_unique<Rfc6298>(0);
}

std::unique_ptr<Contender> make_rto_min()
{
    return std::make_unique<Rfc6298>(millisecond);
}

std::unique_ptr<Contender> make_infiniband()
{
    return std::make_unique<Infiniband>();
}

} // namespace bench::rto
