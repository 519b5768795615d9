// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of a timer after it was posted, by the answer of the target:
//
//   2xx                       done
//   408, 425, 429, 5xx        again; after Retry-After where 429 and 503 have
//                             it, a day at most
//   other 4xx                 fail: the target has refused the payload
//   3xx                       again: redirects are not followed
//   no answer, a broken one   again
//   no descriptor or memory   deferred: it is not the target's fault
//   no URL of http or https   fail

#ifndef LAWND_OUTCOME_H
#define LAWND_OUTCOME_H

#include <curl/curl.h>

#include <cstdint>
#include <string>

namespace lawnd
{

enum class Verdict {
    done,
    again, // counts as an attempt
    defer, // was not tried
    fail
};

struct Outcome {
    Verdict verdict;
    int64_t delay_us;  // of again and defer; -1: as the timer's backoff says
    std::string error; // one printable line; empty if done
};

// Of a post that has ended with `code`, if that is not for want of descriptors
// or memory. `error` is what libcurl says in words, or "".
Outcome outcome_of(CURL *easy, CURLcode code, const char *error);

} // namespace lawnd

#endif
