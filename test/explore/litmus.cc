// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The threads of litmus.h.

#include "litmus.h"

namespace litmus
{

namespace
{

template <int order> void set_x(State *state)
{
    __atomic_store_n(&state->x, 1, order);
}

template <int order> void set_y(State *state)
{
    __atomic_store_n(&state->y, 1, order);
}

template <int stores, int loads> void set_x_see_y(State *state)
{
    __atomic_store_n(&state->x, 1, stores);
    state->seen[0] = __atomic_load_n(&state->y, loads);
}

template <int stores, int loads> void set_y_see_x(State *state)
{
    __atomic_store_n(&state->y, 1, stores);
    state->seen[1] = __atomic_load_n(&state->x, loads);
}

// `x` is the message, `y` the flag.
template <int order> void send(State *state)
{
    __atomic_store_n(&state->x, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&state->y, 1, order);
}

template <int order> void receive(State *state)
{
    state->seen[0] = __atomic_load_n(&state->y, order);
    state->seen[1] = __atomic_load_n(&state->x, __ATOMIC_RELAXED);
}

void add_to_flag(State *state)
{
    __atomic_fetch_add(&state->y, 2, __ATOMIC_RELAXED);
}

void overwrite_flag(State *state)
{
    __atomic_store_n(&state->y, 2, __ATOMIC_RELAXED);
}

template <int order> void see_x_then_y(State *state)
{
    state->seen[0] = __atomic_load_n(&state->x, order);
    state->seen[1] = __atomic_load_n(&state->y, order);
}

template <int order> void see_y_then_x(State *state)
{
    state->seen[2] = __atomic_load_n(&state->y, order);
    state->seen[3] = __atomic_load_n(&state->x, order);
}

void count_x(State *state)
{
    __atomic_store_n(&state->x, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&state->x, 2, __ATOMIC_RELAXED);
}

void see_x_twice(State *state)
{
    state->seen[0] = __atomic_load_n(&state->x, __ATOMIC_RELAXED);
    state->seen[1] = __atomic_load_n(&state->x, __ATOMIC_RELAXED);
}

void swap_x(State *state)
{
    int expected = 0;
    state->seen[0] = __atomic_compare_exchange_n(
        &state->x, &expected, 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    state->seen[1] = expected;
}

void write_plain(State *state)
{
    state->plain = 1;
    __atomic_store_n(&state->y, 1, __ATOMIC_RELAXED);
}

void read_plain(State *state)
{
    if (__atomic_load_n(&state->y, __ATOMIC_ACQUIRE) == 1) {
        state->seen[0] = state->plain;
    }
}

void wait_for_y(State *state)
{
    while (__atomic_load_n(&state->y, __ATOMIC_ACQUIRE) == 0) {
    }
}

} // namespace

constexpr int relaxed = __ATOMIC_RELAXED;
constexpr int acquire = __ATOMIC_ACQUIRE;
constexpr int release = __ATOMIC_RELEASE;
constexpr int seq_cst = __ATOMIC_SEQ_CST;

const Test store_buffers_seq_cst = {
    "store buffers, seq_cst",
    {set_x_see_y<seq_cst, seq_cst>, set_y_see_x<seq_cst, seq_cst>}};
const Test store_buffers_acq_rel = {
    "store buffers, release and acquire",
    {set_x_see_y<release, acquire>, set_y_see_x<release, acquire>}};
const Test message_release = {"a message", {send<release>, receive<acquire>}};
const Test message_relaxed = {"a message, sent relaxed",
                              {send<relaxed>, receive<acquire>}};
const Test message_acquired_late = {"a message, received relaxed",
                                    {send<release>, receive<relaxed>}};
const Test message_through_add = {
    "a message, and an add to its flag",
    {send<release>, add_to_flag, receive<acquire>}};
const Test message_through_store = {
    "a message, whose flag is overwritten",
    {send<release>, overwrite_flag, receive<acquire>}};
const Test independent_seq_cst = {"two writers, two readers, seq_cst",
                                  {set_x<seq_cst>, set_y<seq_cst>,
                                   see_x_then_y<seq_cst>,
                                   see_y_then_x<seq_cst>}};
const Test independent_acquire = {"two writers, two readers, acquire",
                                  {set_x<release>, set_y<release>,
                                   see_x_then_y<acquire>,
                                   see_y_then_x<acquire>}};
const Test two_loads_of_one = {"two loads", {count_x, see_x_twice}};
const Test weak_swap = {"a weak swap", {swap_x}};
const Test plain_without_order = {"plain, without order",
                                  {write_plain, read_plain}};
const Test spins_for_ever = {"spins", {wait_for_y, read_plain}};

} // namespace litmus
