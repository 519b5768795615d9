/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Tells helgrind of the compiler's atomics, of which it knows nothing: to it
 * they are plain accesses, and every one a race. Included before all else into
 * each file (-include), so that no file has to know: a macro of the builtin's
 * name does the access by the builtin, and tells what its memory order means.
 * So the library's sources run as they are, and so do the inline functions of
 * its headers and std::atomic in the tests.
 *
 *   - A release: what the thread has done comes before what a thread does that
 *     later acquires the same location.
 *   - An acquire: the other side of it. A relaxed access is neither.
 *   - The location itself is not watched from its first atomic access on, until
 *     its memory is allocated anew.
 *
 * It is told before a release and after an acquire, and threads may switch in
 * between; a location remembers all of its releases, not just the latest; and
 * an exchange that fails counts as a release, too. All of that only adds order,
 * so what is reported is a race. Nor does it hide much: where a release or an
 * acquire is missing, nothing orders what was written since the one before.
 *
 * What is not seen: that a location is accessed plainly here and atomically
 * there, for which there is the thread sanitizer; and that release and acquire
 * are too little where sequential consistency is wanted.
 */

#ifndef LAWN_TEST_HELGRIND_ATOMICS_H
#define LAWN_TEST_HELGRIND_ATOMICS_H

#include <stddef.h>

#include <valgrind/helgrind.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline void lawn_helgrind_before(const volatile void *at, size_t size,
                                        int order)
{
    VALGRIND_HG_DISABLE_CHECKING(at, size);
    if (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL ||
        order == __ATOMIC_SEQ_CST) {
        ANNOTATE_HAPPENS_BEFORE(at);
    }
}

static inline void lawn_helgrind_after(const volatile void *at, int order)
{
    if (order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ||
        order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST) {
        ANNOTATE_HAPPENS_AFTER(at);
    }
}

/*
 * Defined nowhere: a fence has no location by which to tell what it orders, so
 * a program that has one does not link.
 */
void lawn_helgrind_knows_no_fences(void);

#ifdef __cplusplus
}
#endif

/*
 * Arguments are evaluated once, and before anything is told. Inside of a macro
 * its name is not expanded again, and so the builtin's. Of a builtin that is
 * not here, helgrind reports the races that it takes it for.
 */
#define LAWN_HELGRIND_AT(p, order)                                             \
    __typeof__(p) lawn_at = (p);                                               \
    const int lawn_order = (order)

/* No release, also if it is sequentially consistent. */
#define LAWN_HELGRIND_LOAD(load)                                               \
    lawn_helgrind_before(lawn_at, sizeof(*lawn_at), __ATOMIC_RELAXED);         \
    load;                                                                      \
    lawn_helgrind_after(lawn_at, lawn_order)

/* No acquire. */
#define LAWN_HELGRIND_STORE(store)                                             \
    lawn_helgrind_before(lawn_at, sizeof(*lawn_at), lawn_order);               \
    store

#define LAWN_HELGRIND_CHANGE(builtin, p, value, order)                         \
    __extension__({                                                            \
        LAWN_HELGRIND_AT(p, order);                                            \
        __typeof__(value) lawn_value = (value);                                \
        lawn_helgrind_before(lawn_at, sizeof(*lawn_at), lawn_order);           \
        __typeof__(*lawn_at) lawn_was =                                        \
            builtin(lawn_at, lawn_value, lawn_order);                          \
        lawn_helgrind_after(lawn_at, lawn_order);                              \
        lawn_was;                                                              \
    })

#define __atomic_load_n(p, order)                                              \
    __extension__({                                                            \
        LAWN_HELGRIND_AT(p, order);                                            \
        LAWN_HELGRIND_LOAD(__typeof__(*lawn_at) lawn_is =                      \
                               __atomic_load_n(lawn_at, lawn_order));          \
        lawn_is;                                                               \
    })

#define __atomic_store_n(p, value, order)                                      \
    __extension__({                                                            \
        LAWN_HELGRIND_AT(p, order);                                            \
        __typeof__(*lawn_at) lawn_value = (value);                             \
        LAWN_HELGRIND_STORE(                                                   \
            __atomic_store_n(lawn_at, lawn_value, lawn_order));                \
    })

#define __atomic_clear(p, order)                                               \
    __extension__({                                                            \
        LAWN_HELGRIND_AT(p, order);                                            \
        LAWN_HELGRIND_STORE(__atomic_clear(lawn_at, lawn_order));              \
    })

#define __atomic_test_and_set(p, order)                                        \
    __extension__({                                                            \
        LAWN_HELGRIND_AT(p, order);                                            \
        lawn_helgrind_before(lawn_at, sizeof(*lawn_at), lawn_order);           \
        const int lawn_was = __atomic_test_and_set(lawn_at, lawn_order);       \
        lawn_helgrind_after(lawn_at, lawn_order);                              \
        lawn_was;                                                              \
    })

#define __atomic_exchange_n(p, value, order)                                   \
    LAWN_HELGRIND_CHANGE(__atomic_exchange_n, p, value, order)
#define __atomic_fetch_add(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_fetch_add, p, value, order)
#define __atomic_fetch_sub(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_fetch_sub, p, value, order)
#define __atomic_fetch_and(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_fetch_and, p, value, order)
#define __atomic_fetch_or(p, value, order)                                     \
    LAWN_HELGRIND_CHANGE(__atomic_fetch_or, p, value, order)
#define __atomic_fetch_xor(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_fetch_xor, p, value, order)
#define __atomic_add_fetch(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_add_fetch, p, value, order)
#define __atomic_sub_fetch(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_sub_fetch, p, value, order)
#define __atomic_and_fetch(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_and_fetch, p, value, order)
#define __atomic_or_fetch(p, value, order)                                     \
    LAWN_HELGRIND_CHANGE(__atomic_or_fetch, p, value, order)
#define __atomic_xor_fetch(p, value, order)                                    \
    LAWN_HELGRIND_CHANGE(__atomic_xor_fetch, p, value, order)

#define __atomic_compare_exchange_n(p, expected, value, weak, order, failed)   \
    __extension__({                                                            \
        LAWN_HELGRIND_AT(p, order);                                            \
        __typeof__(expected) lawn_expected = (expected);                       \
        __typeof__(*lawn_at) lawn_value = (value);                             \
        lawn_helgrind_before(lawn_at, sizeof(*lawn_at), lawn_order);           \
        const int lawn_is_done = __atomic_compare_exchange_n(                  \
            lawn_at, lawn_expected, lawn_value, weak, lawn_order, failed);     \
        lawn_helgrind_after(lawn_at, lawn_is_done ? lawn_order : (failed));    \
        lawn_is_done;                                                          \
    })

#define __atomic_thread_fence(order) lawn_helgrind_knows_no_fences()

#endif
