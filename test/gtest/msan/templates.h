/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Included before all else under MemorySanitizer: has the templates that
 * libstdc++ holds compiled (strings, streams) instantiated in our code, where
 * the sanitizer sees them.
 */
#ifdef __cplusplus
#include <bits/c++config.h>
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE 0
#endif
