// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "outcome.h"

#include <algorithm>

namespace lawnd
{

namespace
{

constexpr long longest_retry_sec = 24L * 3600;
constexpr int64_t usec_per_sec = 1000000;

std::string printable(std::string_view text)
{
    std::string line(text.substr(0, 200));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; },
        '?');
    return line;
}

// In seconds, a day at most; 0: there is none. libcurl gives 0 for a number
// that it has no room for, too.
curl_off_t retry_after(CURL *easy)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    curl_header *header = nullptr;
    if (seconds == 0 && curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER,
                                         -1, &header) == CURLHE_OK) {
        const std::string_view value = header->value;
        const bool is_number =
            value.find_first_not_of("0123456789") == value.npos;
        const bool is_zero = value.find_first_not_of('0') == value.npos;
        return is_number && !is_zero ? longest_retry_sec : 0;
    }
    return std::min<curl_off_t>(seconds, longest_retry_sec);
}

} // namespace

Outcome outcome_of(CURL *easy, CURLcode code, const char *error)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    // The status counts also where the rest was cut off: nobody reads it.
    const bool is_cut_off =
        code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY;
    if (code != CURLE_OK && !(is_cut_off && status >= 200)) {
        const char *const detail =
            error[0] != '\0' ? error : curl_easy_strerror(code);
        return {Verdict::again, -1, "no answer: " + printable(detail)};
    }
    if (status >= 200 && status < 300) {
        return {Verdict::done, -1, ""};
    }
    Outcome outcome = {Verdict::again, -1,
                       "HTTP status " + std::to_string(status)};
    if (status == 429 || status == 503) {
        const curl_off_t seconds = retry_after(easy);
        if (seconds > 0) {
            outcome.delay_us = seconds * static_cast<int64_t>(usec_per_sec);
        }
    } else if (status >= 400 && status < 500 && status != 408 &&
               status != 425) {
        outcome.verdict = Verdict::fail;
    }
    return outcome;
}

} // namespace lawnd
