// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A leaky bucket by virtual scheduling (lawn/pacer.h). All that it knows of the
// past is the time at which what was taken is paid for, in 2^-32 ticks. If that
// time is past, the bucket is full. If it is ahead by what the burst is worth,
// the bucket is empty. Each sum is exact, so errors never add up: only the
// ticks of one byte are rounded, and these up.

#include "base/base.h"

#include <lawn/pacer.h>

#include <stddef.h>

using namespace lawn;

namespace
{

__extension__ typedef unsigned __int128 uint128;

constexpr unsigned fraction_bits = 32;
constexpr uint128 unpayable = uint128{LAWN_TIME_INFINITY} << fraction_bits;
constexpr uint64_t almost_a_tick = 0xffffffff;
// So that no sum of the frequent case wraps.
constexpr lawn_time_t last_time = LAWN_TIME_INFINITY >> 1;
constexpr double two_to_32 = 4294967296.0;
constexpr double two_to_63 = two_to_32 * two_to_32 / 2;

static_assert(offsetof(lawn_pacer_t, timer) == 0, "");
static_assert(sizeof(void *) != 8 || sizeof(lawn_pacer_t) <= 104, "");

uint128 paid_at(const lawn_pacer_t *pacer)
{
    return uint128{pacer->paid_at} << fraction_bits | pacer->paid_at_fraction;
}

void set_paid_at(lawn_pacer_t *pacer, uint128 time)
{
    const uint128 at = time < unpayable ? time : unpayable;
    pacer->paid_at = static_cast<lawn_time_t>(at >> fraction_bits);
    pacer->paid_at_fraction = static_cast<uint32_t>(at);
}

// How much must be unpaid at `now`; nothing, if the bucket is full.
uint128 debt(const lawn_pacer_t *pacer, lawn_time_t now)
{
    const uint128 at = paid_at(pacer);
    const uint128 time = uint128{now} << fraction_bits;
    return at > time ? at - time : 0;
}

inline void pay_later(lawn_pacer_t *pacer, lawn_time_t now, uint128 price)
{
    const uint128 from =
        pacer->paid_at < now ? uint128{now} << fraction_bits : paid_at(pacer);
    set_paid_at(pacer, price < unpayable ? from + price : unpayable);
}

void wait(lawn_pacer_t *pacer, lawn_time_t now)
{
    lawn_timer_start_at(pacer->lawn, &pacer->timer, now,
                        lawn_pacer_next(pacer, pacer->wanted));
}

// The flow waits for what is due now, whatever was done since.
void expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_pacer_t *const pacer = reinterpret_cast<lawn_pacer_t *>(timer);
    if (pacer->ready) {
        pacer->ready(pacer, now);
    }
}

// For any numbers, and where the flow waits already.
LAWN_COLD_PATH bool take_rarely(lawn_pacer_t *pacer, lawn_time_t now,
                                uint64_t bytes)
{
    if (!pacer->lawn) {
        return true;
    }
    const lawn_time_t next = lawn_pacer_next(pacer, bytes);
    if (next > now) {
        pacer->wanted = bytes;
        lawn_timer_start_at(pacer->lawn, &pacer->timer, now, next);
        return false;
    }
    lawn_pacer_force(pacer, now, bytes);
    return true;
}

// Returns 0 if no pacer can have this rate and burst.
uint64_t byte_ticks_of(double rate, uint64_t burst, double ticks_per_sec)
{
    if (!(rate > 0 && rate <= two_to_63)) {
        return 0;
    }
    const double exact = ticks_per_sec / rate * two_to_32;
    if (!(exact < 2 * two_to_63)) {
        return 0;
    }
    uint64_t ticks = static_cast<uint64_t>(exact);
    ticks += static_cast<double>(ticks) < exact;
    return uint128{burst} * ticks <= unpayable / 2 ? ticks : 0;
}

} // namespace

lawn_status_t lawn_pacer_init_sized(lawn_pacer_t *pacer, lawn_t *lawn,
                                    const lawn_pacer_params_t *params,
                                    size_t size, lawn_pacer_ready_fn_t ready)
{
    if (!pacer || !lawn || !params) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_pacer_params_t known;
    if (!read_known(params, size, &known)) {
        return LAWN_ERR_UNSUPPORTED;
    }
    if (lawn_pacer_is_waiting(pacer)) {
        return LAWN_ERR_BUSY;
    }
    if (!(known.ticks_per_sec >= 0 && known.ticks_per_sec <= __DBL_MAX__)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const double ticks_per_sec =
        known.ticks_per_sec > 0 ? known.ticks_per_sec : lawn_time_sec_value();
    const uint64_t byte_ticks =
        byte_ticks_of(known.rate, known.burst, ticks_per_sec);
    if (byte_ticks == 0) {
        return LAWN_ERR_INVALID_PARAM;
    }
    *pacer = {};
    lawn_timer_init(&pacer->timer, expired);
    pacer->lawn = lawn;
    pacer->ready = ready;
    pacer->byte_ticks = byte_ticks;
    pacer->burst = known.burst;
    pacer->ticks_per_sec = ticks_per_sec;
    return LAWN_OK;
}

bool lawn_pacer_take(lawn_pacer_t *pacer, lawn_time_t now, uint64_t bytes)
{
    // What nearly all calls need fits 64 bits: spans of less than 2^31 ticks.
    const uint128 price = uint128{bytes} * pacer->byte_ticks;
    const uint128 burst = uint128{pacer->burst} * pacer->byte_ticks;
    const lawn_time_t ahead = pacer->paid_at - now;
    const bool owes = pacer->paid_at >= now;
    if (LAWN_UNLIKELY(!pacer->lawn || (price | burst) >= uint64_t{1} << 63 ||
                      (owes && ahead >= uint64_t{1} << 31) ||
                      now >= last_time || lawn_pacer_is_waiting(pacer))) {
        return take_rarely(pacer, now, bytes);
    }
    const uint64_t cost = static_cast<uint64_t>(price);
    const uint64_t all = static_cast<uint64_t>(burst);
    const uint64_t owed =
        owes ? ahead << fraction_bits | pacer->paid_at_fraction : 0;
    const uint64_t credit = cost < all ? all - cost : 0;
    if (owed > credit) {
        pacer->wanted = bytes;
        const uint64_t rest = owed - credit + almost_a_tick;
        lawn_timer_start_at(pacer->lawn, &pacer->timer, now,
                            now + (rest >> fraction_bits));
        return false;
    }
    const uint64_t unpaid = owed + cost;
    pacer->paid_at = now + (unpaid >> fraction_bits);
    pacer->paid_at_fraction = static_cast<uint32_t>(unpaid);
    return true;
}

void lawn_pacer_force(lawn_pacer_t *pacer, lawn_time_t now, uint64_t bytes)
{
    if (!pacer->lawn) {
        return;
    }
    pay_later(pacer, now, uint128{bytes} * pacer->byte_ticks);
    if (lawn_pacer_is_waiting(pacer)) {
        wait(pacer, now);
    }
}

void lawn_pacer_yield(lawn_pacer_t *pacer, lawn_time_t now)
{
    if (pacer->lawn) {
        // It may owe more than its burst.
        pacer->wanted = 0;
        wait(pacer, now);
    }
}

void lawn_pacer_stop(lawn_pacer_t *pacer)
{
    if (pacer->lawn) {
        lawn_timer_stop(pacer->lawn, &pacer->timer);
    }
}

lawn_status_t lawn_pacer_set_rate(lawn_pacer_t *pacer, lawn_time_t now,
                                  double rate, uint64_t burst)
{
    const uint64_t byte_ticks =
        pacer && pacer->lawn ? byte_ticks_of(rate, burst, pacer->ticks_per_sec)
                             : 0;
    if (byte_ticks == 0) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const uint128 owed = debt(pacer, now);
    if (owed != 0) {
        // The same bytes at the new rate, rounded up.
        const uint128 bytes = owed / pacer->byte_ticks;
        const uint128 rest = owed % pacer->byte_ticks * byte_ticks;
        const uint128 more =
            rest / pacer->byte_ticks + (rest % pacer->byte_ticks != 0);
        uint128 ticks;
        if (__builtin_mul_overflow(bytes, byte_ticks, &ticks) ||
            ticks > unpayable) {
            ticks = unpayable;
        }
        set_paid_at(pacer, (uint128{now} << fraction_bits) + ticks + more);
    }
    pacer->byte_ticks = byte_ticks;
    pacer->burst = burst;
    if (lawn_pacer_is_waiting(pacer)) {
        wait(pacer, now);
    }
    return LAWN_OK;
}

lawn_time_t lawn_pacer_next(const lawn_pacer_t *pacer, uint64_t bytes)
{
    if (pacer->paid_at == LAWN_TIME_INFINITY) {
        return LAWN_TIME_INFINITY;
    }
    // While the bytes go, what is left of the burst may be owed.
    const uint64_t left = bytes < pacer->burst ? pacer->burst - bytes : 0;
    const uint128 credit = uint128{left} * pacer->byte_ticks;
    const uint128 at = paid_at(pacer);
    return at <= credit ? 0
                        : static_cast<lawn_time_t>(
                              (at - credit + almost_a_tick) >> fraction_bits);
}

uint64_t lawn_pacer_allowance(const lawn_pacer_t *pacer, lawn_time_t now)
{
    if (!pacer->lawn) {
        return UINT64_MAX;
    }
    if (pacer->paid_at == LAWN_TIME_INFINITY) {
        return 0;
    }
    const uint128 owed = debt(pacer, now);
    const uint128 bytes =
        owed / pacer->byte_ticks + (owed % pacer->byte_ticks != 0);
    return bytes < pacer->burst ? pacer->burst - static_cast<uint64_t>(bytes)
                                : 0;
}
