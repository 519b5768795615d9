// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// This library's pacers.

#include "paces/paces.h"

#include <lawn/pacer.h>

#include <new>
#include <vector>

namespace bench
{

namespace
{

struct Flow {
    lawn_pacer_t pacer; // first
    uint64_t sent;
};

class LawnPacers : public Paces
{
public:
    explicit LawnPacers(size_t count)
        : Paces("lawn_pacer", sizeof(lawn_pacer_t)), flows_(count)
    {
        if (lawn_create(nullptr, &lawn_) != LAWN_OK) {
            throw std::bad_alloc();
        }
        instance = this;
    }

    ~LawnPacers() override
    {
        lawn_destroy(lawn_);
    }

    void begin(size_t i, lawn_time_t now, double gap, double phase) override
    {
        constexpr double size = packet_bytes;
        lawn_pacer_params_t params = {};
        params.ticks_per_sec = 1e9;
        params.rate = size / gap * 1e9;
        params.burst =
            packet_bytes + static_cast<uint64_t>(most_behind / gap * size);
        lawn_pacer_t *const pacer = &flows_[i].pacer;
        if (lawn_pacer_init(pacer, lawn_, &params, send) != LAWN_OK) {
            throw std::bad_alloc();
        }
        lawn_pacer_force(pacer, now,
                         params.burst - packet_bytes +
                             static_cast<uint64_t>(phase * size));
        send(pacer, now);
    }

    void pass(lawn_time_t now) override
    {
        lawn_advance(lawn_, now, 0);
    }

    uint64_t sent(size_t i) const override
    {
        return flows_[i].sent;
    }

private:
    static void send(lawn_pacer_t *pacer, lawn_time_t now)
    {
        while (lawn_pacer_take(pacer, now, packet_bytes)) {
            ++reinterpret_cast<Flow *>(pacer)->sent;
            ++instance->packets;
        }
    }

    static LawnPacers *instance; // one at a time

    lawn_t *lawn_ = nullptr;
    std::vector<Flow> flows_;
};

LawnPacers *LawnPacers::instance;

} // namespace

std::unique_ptr<Paces> make_lawn_pacers(size_t count)
{
    return std::make_unique<LawnPacers>(count);
}

} // namespace bench
