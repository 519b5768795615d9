// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What takes part: the retransmission timers of one connection. The flow
// (flow.h) has the messages and the network, and is the same for all.

#ifndef LAWN_BENCH_RTO_CONTENDER_H
#define LAWN_BENCH_RTO_CONTENDER_H

#include <cstdint>
#include <memory>
#include <vector>

namespace bench::rto
{

// Virtual time. A tick is a nanosecond.
using Tick = uint64_t;

constexpr Tick never = UINT64_MAX;
constexpr Tick microsecond = 1'000;
constexpr Tick millisecond = 1'000'000;
constexpr Tick second = 1'000'000'000;

// A transmission of a message, the first or a later one. Several may have one
// time, and none has the serial number of another: each has a greater one than
// those before it.
struct Sending {
    Tick at = never; // never: not known, or there is none
    uint32_t serial = UINT32_MAX;
};

// Which messages are to be sent again besides the oldest: those of which the
// latest transmission is from before `before` and has a lower serial number
// than `newest`, and those with a lower serial number than `number`. Without
// any of this, none.
struct Lost {
    Tick before = 0;
    uint32_t newest = UINT32_MAX;
    uint32_t number = 0;

    bool includes(const Sending &sending) const
    {
        return (sending.at < before && sending.serial < newest) ||
               sending.serial < number;
    }
};

// What a contender may do.
class Flow;

class Contender
{
public:
    virtual ~Contender() = default;

    // Begins a connection. `flow` outlives it.
    virtual void open(Flow &flow, Tick now, Tick round_trip) = 0;
    // A message was sent for the first time.
    virtual void sent(Tick now, Sending sending) = 0;
    // An ACK of something new, which names the transmission that it answers,
    // if that is known. `oldest` is the least recent transmission that is still
    // unacknowledged; a message that was sent again counts from then.
    virtual void acked(Tick now, Sending sending, Sending oldest) = 0;
    // An ACK of nothing new that names a transmission, or an answer to ask().
    virtual void echoed(Tick now, Sending sending) = 0;
    // An ACK of nothing new that names nothing.
    virtual void received(Tick /*now*/)
    {
    }
    // Messages were sent again.
    virtual void resent(Tick now, Sending oldest) = 0;
    // When pass() must be called next.
    virtual Tick next() const = 0;
    // A pass of the program's loop: receives what has arrived (Flow::poll), and
    // then expires timers.
    virtual void pass(Tick now) = 0;
};

// A kind of contender. NULL `make`: the oracle, which measure.h has to find for
// each path.
struct Kind {
    const char *name;
    const char *what;
    bool by_default;
    std::unique_ptr<Contender> (*make)();
};

const std::vector<Kind> &kinds();

// A fixed RTO that doubles in each silence.
std::unique_ptr<Contender> make_fixed(Tick rto);

std::unique_ptr<Contender> make_rfc6298();
std::unique_ptr<Contender> make_rto_min();
std::unique_ptr<Contender> make_infiniband();
std::unique_ptr<Contender> make_ucx();
std::unique_ptr<Contender> make_linux();
std::unique_ptr<Contender> make_linux_250();
std::unique_ptr<Contender> make_quic();
std::unique_ptr<Contender> make_lawn();
std::unique_ptr<Contender> make_lawn_ask();

// The same as make_lawn() and make_lawn_ask(), but it begins with what `known`,
// one of these, has measured (lawn_conn_inherit).
std::unique_ptr<Contender> make_lawn_heir(const Contender &known,
                                          bool does_ask);

} // namespace bench::rto

#endif
