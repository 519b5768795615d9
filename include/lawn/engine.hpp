// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/engine.hpp - owners of what the C API creates, and the engine with
// durations, for C++17. lawn/lawn.hpp includes it, and what it says about
// exceptions and threads holds here.

#ifndef LAWN_ENGINE_HPP
#define LAWN_ENGINE_HPP

#include <lawn/chrono.hpp>
#include <lawn/lawn.h>

#include <chrono>
#include <cstddef>
#include <memory>

namespace lawn
{

namespace detail
{

struct destroy {
    void operator()(lawn_t *lawn) const noexcept
    {
        lawn_destroy(lawn);
    }

    void operator()(lawn_engine_t *engine) const noexcept
    {
        lawn_engine_destroy(engine);
    }

    void operator()(lawn_queue_t *queue) const noexcept
    {
        lawn_queue_destroy(queue);
    }

    void operator()(lawn_keyed_t *keyed) const noexcept
    {
        lawn_keyed_destroy(keyed);
    }
};

inline void tell(lawn_status_t status, lawn_status_t *status_p) noexcept
{
    if (status_p) {
        *status_p = status;
    }
}

} // namespace detail

// Owners follow the rules of unique_ptr: they may be moved, not copied. A make
// function that fails returns an empty owner, and `status_p`, if given, says
// why. Queues and keyed tables must be destroyed before their lawn, so declare
// them after the lawn.
using lawn_ptr = std::unique_ptr<lawn_t, detail::destroy>;
using queue_ptr = std::unique_ptr<lawn_queue_t, detail::destroy>;
using keyed_ptr = std::unique_ptr<lawn_keyed_t, detail::destroy>;

// lawn_create()
[[nodiscard]] inline lawn_ptr
make_lawn(const lawn_params_t *params = nullptr,
          lawn_status_t *status_p = nullptr) noexcept
{
    lawn_t *lawn = nullptr;
    detail::tell(lawn_create(params, &lawn), status_p);
    return lawn_ptr(lawn);
}

// lawn_queue_create()
[[nodiscard]] inline queue_ptr
make_queue(lawn_t *lawn, lawn_time_t ttl,
           lawn_status_t *status_p = nullptr) noexcept
{
    lawn_queue_t *queue = nullptr;
    detail::tell(lawn_queue_create(lawn, ttl, &queue), status_p);
    return queue_ptr(queue);
}

// lawn_keyed_create()
[[nodiscard]] inline keyed_ptr
make_keyed(lawn_t *lawn, std::size_t capacity_hint,
           lawn_status_t *status_p = nullptr) noexcept
{
    lawn_keyed_t *keyed = nullptr;
    detail::tell(lawn_keyed_create(lawn, capacity_hint, &keyed), status_p);
    return keyed_ptr(keyed);
}

// Owns an engine, and knows the rate of its clock, which need not be the
// process's clock. Must not be destroyed from inside a pass.
class engine
{
public:
    engine() noexcept = default; // empty

    lawn_engine_t *get() const noexcept
    {
        return engine_.get();
    }

    explicit operator bool() const noexcept
    {
        return engine_ != nullptr;
    }

    // lawn_engine_progress(): makes one pass and returns the work done.
    unsigned progress() noexcept
    {
        return lawn_engine_progress(get());
    }

    // lawn_engine_wait(): waits until something is ready, or for `max_wait`,
    // rounded up. nanoseconds::max() waits for ever.
    template <typename Rep, typename Period>
    lawn_status_t wait(std::chrono::duration<Rep, Period> max_wait) noexcept
    {
        return lawn_engine_wait(get(), to_ticks(max_wait));
    }

    lawn_status_t wait() noexcept
    {
        return lawn_engine_wait(get(), LAWN_TIME_INFINITY);
    }

    // lawn_engine_now(): the time of the latest pass, in ticks. It is no
    // time_point, because the engine's clock need not be the process's clock.
    lawn_time_t now() const noexcept
    {
        return lawn_engine_now(get());
    }

    // As tsc_clock::to_ticks(), but in ticks of this engine.
    template <typename Rep, typename Period>
    lawn_time_t to_ticks(std::chrono::duration<Rep, Period> span) const noexcept
    {
        return detail::ticks_of(detail::nsec_of(span), rate_);
    }

    // The ticks from now until `when`, a time of any std::chrono clock. Rounds
    // up. Returns 0 if `when` is past, and LAWN_TIME_INFINITY for
    // time_point::max() and beyond. Later changes of that clock, for instance
    // when it is set, have no effect.
    template <typename Clock, typename Duration>
    lawn_time_t
    to_ticks(std::chrono::time_point<Clock, Duration> when) const noexcept
    {
        return detail::ticks_of(detail::nsec_until(when), rate_);
    }

private:
    friend engine make_engine(const lawn_engine_params_t *params,
                              lawn_status_t *status_p) noexcept;

    engine(lawn_engine_t *owned, double ticks_per_sec) noexcept
        : engine_(owned), rate_(detail::rate_of(ticks_per_sec))
    {
    }

    std::unique_ptr<lawn_engine_t, detail::destroy> engine_;
    detail::rate rate_ = {};
};

// lawn_engine_create()
[[nodiscard]] inline engine
make_engine(const lawn_engine_params_t *params = nullptr,
            lawn_status_t *status_p = nullptr) noexcept
{
    lawn_engine_t *owned = nullptr;
    detail::tell(lawn_engine_create(params, &owned), status_p);
    if (!owned) {
        return engine();
    }
    const bool is_own = params && params->ticks_per_sec != 0;
    return engine(owned,
                  is_own ? params->ticks_per_sec : lawn_time_sec_value());
}

} // namespace lawn

#endif
