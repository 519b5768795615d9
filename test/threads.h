// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Lets a test do something where the library makes a thread, and where it waits
// for the end of one: for a program that is linked with --wrap=pthread_create
// and --wrap=pthread_join.

#ifndef LAWN_TEST_THREADS_H
#define LAWN_TEST_THREADS_H

#include <functional>

#include <pthread.h>

// Called instead of each pthread_create(), if there is one.
inline thread_local std::function<int()> on_create;
// Called before each pthread_join(), if there is one.
inline thread_local std::function<void()> before_join;

extern "C" {

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *arg);
int __real_pthread_join(pthread_t thread, void **result);

// Not called by their names, so it has to be said that they are used.
__attribute__((used)) inline int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                      void *(*run)(void *), void *arg)
{
    return on_create ? on_create()
                     : __real_pthread_create(thread, how, run, arg);
}

__attribute__((used)) inline int __wrap_pthread_join(pthread_t thread,
                                                     void **result)
{
    if (before_join) {
        before_join();
    }
    return __real_pthread_join(thread, result);
}
}

#endif
