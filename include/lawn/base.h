/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/base.h - what every part of Lawn shares: status codes, version, memory.
 */
#ifndef LAWN_BASE_H
#define LAWN_BASE_H

#include <stddef.h>
#include <stdint.h>

#define LAWN_VERSION_MAJOR 0
#define LAWN_VERSION_MINOR 2
#define LAWN_VERSION_PATCH 0
#define LAWN_VERSION_STRING "0.2.0"

#if defined(__GNUC__)
#define LAWN_API __attribute__((visibility("default")))
#else
#define LAWN_API
#endif

/* For functions whose frequent case is inline. The library has each of them as
 * a symbol too, for whoever takes its address or loads it by name. */
#define LAWN_INLINE LAWN_API inline

/*
 * Structures that grow. A later patch version may add fields at the end of a
 * structure of parameters or of statistics. A function that takes one is
 * therefore compiled into the program (`static inline`). It passes the size of
 * the structure, as the program knows it, to a function of the library whose
 * name ends in `_sized`. Fields that the program does not know are taken as 0,
 * which is their default. Fields that the library does not know are filled with
 * 0 in statistics. In parameters they must be 0: the function returns
 * UNSUPPORTED if they are not. Bindings for other languages call the `_sized`
 * functions.
 */

#if defined(__GNUC__)
#define LAWN_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define LAWN_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define LAWN_LIKELY(condition) (condition)
#define LAWN_UNLIKELY(condition) (condition)
#endif

/* The object of type `type` whose member `member` is at `ptr`: what a callback
 * makes of the timer that it is given, wherever that stands in the object. A
 * `ptr` to anything else than the member's type draws a warning from a C
 * compiler, and an error from one of C++; there, for standard-layout types. */
#define lawn_container_of(ptr, type, member)                                   \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member) +                   \
                      0 * sizeof(0 ? (ptr) : &((type *)0)->member)))

#ifdef __cplusplus
#define LAWN_BEGIN_DECLS extern "C" {
#define LAWN_END_DECLS }
#else
#define LAWN_BEGIN_DECLS
#define LAWN_END_DECLS
#endif

LAWN_BEGIN_DECLS

/* Zero is success, errors are negative. Only set-up functions return one: the
 * data path (start, stop, advance) cannot fail. */
typedef enum {
    LAWN_OK = 0,
    LAWN_ERR_INVALID_PARAM = -1, /* an argument that no call can accept */
    LAWN_ERR_NO_MEMORY = -2,     /* nothing was changed */
    LAWN_ERR_BUSY = -3,          /* there is work to do first */
    LAWN_ERR_UNSUPPORTED = -4,   /* not on this machine, or not in this build */
    LAWN_ERR_IO = -5,            /* the kernel refused; errno says why */
    LAWN_ERR_NO_ELEM = -6,       /* no such element */
    LAWN_ERR_TIMED_OUT = -7,     /* nothing happened in the time given */
    LAWN_ERR_CORRUPT = -8        /* a structure breaks its own invariants */
} lawn_status_t;

/* A short English text, never NULL, also for values that are no status.
 * Any thread. */
LAWN_API const char *lawn_status_string(lawn_status_t status);

/* Version of the library that is running, "major.minor.patch"; compare it with
 * LAWN_VERSION_STRING, the version of the headers. Any thread. */
LAWN_API const char *lawn_version(void);

/* Where an object takes its memory from, at creation and never after (a keyed
 * table, which grows, says so). A zero-filled allocator is malloc and free.
 * `alloc` returns `size` bytes aligned as malloc aligns, or NULL. */
typedef struct {
    void *(*alloc)(void *arg, size_t size);
    void (*release)(void *arg, void *memory);
    void *arg;
} lawn_allocator_t;

LAWN_END_DECLS

#endif
