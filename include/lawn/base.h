/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/base.h - what every part of Lawn shares: status codes, version, memory.
 */
#ifndef LAWN_BASE_H
#define LAWN_BASE_H

/* The README says which compilers and standards the library is tested with. */
#if !defined(__GNUC__) || defined(__TINYC__)
#error "Lawn needs gcc, clang or a compiler that has their extensions"
#elif !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error "Lawn needs a 64-bit machine"
#elif defined(__GNUC_GNU_INLINE__) && !defined(__cplusplus)
#error "Lawn needs the inline of C99: compile with -std=c99 or later"
#endif

#include <stddef.h>
#include <stdint.h>

#define LAWN_VERSION_MAJOR 0
#define LAWN_VERSION_MINOR 7
#define LAWN_VERSION_PATCH 1
#define LAWN_VERSION_STRING "0.7.1"

#define LAWN_API __attribute__((visibility("default")))

/* For functions whose frequent case is inline. The library also exports each of
 * them as a symbol, for programs that take its address or load it by name. */
#define LAWN_INLINE LAWN_API inline

/*
 * Callbacks and signals. A callback of the library must return: not by
 * longjmp(), an exception or the end of its thread. A signal handler must not
 * call the library, except for lawn/time.h as that says.
 */

/*
 * Structures that grow. A later patch version may add fields at the end of a
 * structure of parameters or of statistics. A function that takes one is
 * therefore compiled into the program (`static inline`). It passes the size of
 * the structure, as the program knows it, to a function of the library whose
 * name ends in `_sized`. Fields that the program does not know are taken as 0,
 * which is their default. Fields that the library does not know are filled with
 * 0 in statistics. In parameters they must be 0: the function returns
 * UNSUPPORTED if they are not. So fill a structure with zeros before you set
 * fields. Bindings for other languages call the `_sized` functions.
 */

#define LAWN_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define LAWN_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Returns the object of type `type` whose member `member` is at `ptr`. A
 * callback uses it to get from its timer to the object that contains the timer.
 * If `ptr` does not point to the member's type, a C compiler warns and a C++
 * compiler reports an error. In C++ it works for standard-layout types only. */
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

/* Zero is success, errors are negative. Comments in the headers leave out the
 * prefix: "returns BUSY" is LAWN_ERR_BUSY, and INFINITY is LAWN_TIME_INFINITY.
 * Set-up functions return a status. The data path of lawn/timer.h (start, stop,
 * advance) cannot fail and returns none. */
typedef enum {
    LAWN_OK = 0,
    LAWN_ERR_INVALID_PARAM = -1, /* invalid argument, or not allowed here */
    LAWN_ERR_NO_MEMORY = -2,     /* no memory; nothing was changed */
    LAWN_ERR_BUSY = -3,          /* not now: in use by another, or no room, or
                                  * work is waiting; each function says which */
    LAWN_ERR_UNSUPPORTED = -4,   /* missing on this machine or in this build */
    LAWN_ERR_IO = -5,            /* the kernel refused; errno has the reason */
    LAWN_ERR_NO_ELEM = -6,       /* no such element */
    LAWN_ERR_TIMED_OUT = -7,     /* nothing happened within the given time */
    LAWN_ERR_CORRUPT = -8        /* a structure breaks its own invariants */
} lawn_status_t;

/* With smaller enumerations, the fields of public structures would be elsewhere
 * than the library has them. */
#ifdef __cplusplus
static_assert(sizeof(lawn_status_t) == sizeof(int),
              "Lawn cannot be used with -fshort-enums");
#else
__extension__ _Static_assert(sizeof(lawn_status_t) == sizeof(int),
                             "Lawn cannot be used with -fshort-enums");
#endif

/* Returns a short English text for `status`. The text is never NULL, also if
 * `status` is no status code. Any thread may call it. */
LAWN_API const char *lawn_status_string(lawn_status_t status);

/* Returns the version of the library that is running, as "major.minor.patch".
 * Compare it with LAWN_VERSION_STRING, the version of the headers. Any thread
 * may call it. */
LAWN_API const char *lawn_version(void);

/* The memory functions of an object. The object allocates at creation and never
 * after, except where its header says otherwise (a keyed table grows, for
 * example). A zero-filled allocator selects malloc and free. `alloc` returns
 * `size` bytes, aligned as malloc aligns, or NULL. */
typedef struct {
    void *(*alloc)(void *arg, size_t size);
    void (*release)(void *arg, void *memory);
    void *arg;
} lawn_allocator_t;

LAWN_END_DECLS

#endif
