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

#include <streambuf>

#include <sanitizer/msan_interface.h>

/* Numbers are still written by the facets of a locale, which libstdc++ makes,
 * from memory of its own. So no text that goes to a stream is examined. */
template <>
inline std::streamsize std::streambuf::xsputn(const char *text, streamsize size)
{
    streamsize done = 0;
    __msan_unpoison(text, static_cast<size_t>(size));
    while (done < size && sputc(text[done]) != traits_type::eof()) {
        ++done;
    }
    return done;
}
#endif
