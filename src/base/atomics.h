// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Atomic accesses to memory that threads or processes share, by the compiler's
// builtins.

#ifndef LAWN_SRC_BASE_ATOMICS_H
#define LAWN_SRC_BASE_ATOMICS_H

namespace lawn
{

// As<T> is T, but the compiler does not deduce T from an argument of this type.
template <class T> struct Same {
    using Type = T;
};
template <class T> using As = typename Same<T>::Type;

// All are sequentially consistent, except put().
struct Atomics {
    template <class T> static T load(const T *from)
    {
        return __atomic_load_n(from, __ATOMIC_SEQ_CST);
    }

    template <class T> static void store(T *to, As<T> value)
    {
        __atomic_store_n(to, value, __ATOMIC_SEQ_CST);
    }

    // A release store. Other threads may see it later than what this thread
    // does next.
    template <class T> static void put(T *to, As<T> value)
    {
        __atomic_store_n(to, value, __ATOMIC_RELEASE);
    }

    template <class T> static T exchange(T *at, As<T> value)
    {
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
    }

    // If *at is *expected, stores `value` and returns true. Otherwise stores in
    // *expected what *at is, and returns false.
    template <class T> static bool swap(T *at, T *expected, As<T> value)
    {
        return __atomic_compare_exchange_n(at, expected, value, false,
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }

    template <class T> static T add(T *at, As<T> value)
    {
        return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
    }

    template <class T> static T set(T *at, As<T> bits)
    {
        return __atomic_fetch_or(at, bits, __ATOMIC_SEQ_CST);
    }

    template <class T> static T clear(T *at, As<T> bits)
    {
        return __atomic_fetch_and(at, static_cast<T>(~bits), __ATOMIC_SEQ_CST);
    }
};

} // namespace lawn

#endif
