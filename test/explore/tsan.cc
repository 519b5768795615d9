// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What code that is compiled with -fsanitize=thread calls, in the place of
// ThreadSanitizer's own library: it tells the explorer. Outside of an explored
// thread, an access is what it says.

#include "explorer.h"

#include <string.h>

using explore::explorer;
using explore::Order;

namespace
{

// A consume counts as an acquire, as compilers have it.
Order order_of(int order)
{
    static constexpr Order orders[] = {Order::relaxed, Order::acquire,
                                       Order::acquire, Order::release,
                                       Order::acq_rel, Order::seq_cst};
    return orders[order & 7];
}

uint64_t put(uint64_t, uint64_t operand)
{
    return operand;
}

uint64_t add(uint64_t was, uint64_t operand)
{
    return was + operand;
}

uint64_t subtract(uint64_t was, uint64_t operand)
{
    return was - operand;
}

uint64_t and_with(uint64_t was, uint64_t operand)
{
    return was & operand;
}

uint64_t or_with(uint64_t was, uint64_t operand)
{
    return was | operand;
}

template <typename T> T *plain(volatile T *at)
{
    return const_cast<T *>(at);
}

template <typename T>
T modify(volatile T *at, T operand, int order, const void *pc,
         uint64_t (*make)(uint64_t, uint64_t))
{
    if (explorer().is_running()) {
        return static_cast<T>(explorer().modify(
            plain(at), sizeof(T), order_of(order), pc, make, operand));
    }
    explorer().memory().keep(plain(at), sizeof(T));
    const T was = *at;
    *at = static_cast<T>(make(was, operand));
    return was;
}

template <typename T>
bool swap(volatile T *at, T *expected, T value, int order, int failure,
          bool is_weak, const void *pc)
{
    if (explorer().is_running()) {
        uint64_t was = *expected;
        const bool result =
            explorer().swap(plain(at), sizeof(T), &was, value, order_of(order),
                            order_of(failure), is_weak, pc);
        *expected = static_cast<T>(was);
        return result;
    }
    const bool result = *at == *expected;
    if (result) {
        explorer().memory().keep(plain(at), sizeof(T));
        *at = value;
    } else {
        *expected = *at;
    }
    return result;
}

void read(void *at, size_t size, const void *pc)
{
    if (explorer().is_running()) {
        explorer().read(at, size, pc);
    }
}

void write(void *at, size_t size, const void *pc)
{
    if (explorer().is_running()) {
        explorer().write(at, size, pc);
    } else {
        explorer().memory().keep(at, size);
    }
}

} // namespace

// NOLINTBEGIN: names and types are the compiler's
#define CALLER __builtin_return_address(0)

#define ATOMIC(bits, T)                                                        \
    T __tsan_atomic##bits##_load(const volatile T *at, int order)              \
    {                                                                          \
        return explorer().is_running()                                         \
                   ? static_cast<T>(explorer().load(const_cast<T *>(at),       \
                                                    sizeof(T),                 \
                                                    order_of(order), CALLER))  \
                   : *at;                                                      \
    }                                                                          \
    void __tsan_atomic##bits##_store(volatile T *at, T value, int order)       \
    {                                                                          \
        if (explorer().is_running()) {                                         \
            explorer().store(plain(at), sizeof(T), value, order_of(order),     \
                             CALLER);                                          \
        } else {                                                               \
            explorer().memory().keep(plain(at), sizeof(T));                    \
            *at = value;                                                       \
        }                                                                      \
    }                                                                          \
    T __tsan_atomic##bits##_exchange(volatile T *at, T value, int order)       \
    {                                                                          \
        return modify(at, value, order, CALLER, put);                          \
    }                                                                          \
    T __tsan_atomic##bits##_fetch_add(volatile T *at, T value, int order)      \
    {                                                                          \
        return modify(at, value, order, CALLER, add);                          \
    }                                                                          \
    T __tsan_atomic##bits##_fetch_sub(volatile T *at, T value, int order)      \
    {                                                                          \
        return modify(at, value, order, CALLER, subtract);                     \
    }                                                                          \
    T __tsan_atomic##bits##_fetch_and(volatile T *at, T value, int order)      \
    {                                                                          \
        return modify(at, value, order, CALLER, and_with);                     \
    }                                                                          \
    T __tsan_atomic##bits##_fetch_or(volatile T *at, T value, int order)       \
    {                                                                          \
        return modify(at, value, order, CALLER, or_with);                      \
    }                                                                          \
    bool __tsan_atomic##bits##_compare_exchange_strong(                        \
        volatile T *at, T *expected, T value, int order, int failure)          \
    {                                                                          \
        return swap(at, expected, value, order, failure, false, CALLER);       \
    }                                                                          \
    bool __tsan_atomic##bits##_compare_exchange_weak(                          \
        volatile T *at, T *expected, T value, int order, int failure)          \
    {                                                                          \
        return swap(at, expected, value, order, failure, true, CALLER);        \
    }

#define PLAIN(size)                                                            \
    void __tsan_read##size(void *at)                                           \
    {                                                                          \
        read(at, size, CALLER);                                                \
    }                                                                          \
    void __tsan_write##size(void *at)                                          \
    {                                                                          \
        write(at, size, CALLER);                                               \
    }                                                                          \
    void __tsan_unaligned_read##size(void *at)                                 \
    {                                                                          \
        read(at, size, CALLER);                                                \
    }                                                                          \
    void __tsan_unaligned_write##size(void *at)                                \
    {                                                                          \
        write(at, size, CALLER);                                               \
    }

extern "C" {

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, size_t size)
{
    read(at, size, CALLER);
}

void __tsan_write_range(void *at, size_t size)
{
    write(at, size, CALLER);
}

void __tsan_init()
{
}

void __tsan_func_entry(void *)
{
}

void __tsan_func_exit()
{
}

} // extern "C"
// NOLINTEND
