// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Counts what is allocated. For one source of a program that is linked with
// --wrap for each function below.

#ifndef LAWN_TEST_MODEL_COUNTED_MALLOC_H
#define LAWN_TEST_MODEL_COUNTED_MALLOC_H

#include <cstddef>

namespace
{

size_t allocated; // since it was set to 0; in bytes

} // namespace

extern "C" {

void *__real_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    allocated += size;
    return __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    allocated += count * size;
    return __real_calloc(count, size);
}

void *__real_memalign(size_t alignment, size_t size);

void *__wrap_memalign(size_t alignment, size_t size)
{
    allocated += size;
    return __real_memalign(alignment, size);
}
}

#endif
