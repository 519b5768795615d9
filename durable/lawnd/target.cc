// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The target of a URL (target.h).

#include "target.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <new>

namespace lawnd
{

namespace
{

struct Url {
    void operator()(CURLU *url) const
    {
        curl_url_cleanup(url);
    }
};

std::string part_of(CURLU *url, CURLUPart part)
{
    char *text = nullptr;
    if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) {
        return "";
    }
    std::string copy = text;
    curl_free(text);
    return copy;
}

} // namespace

std::string target_of(const std::string &text)
{
    const std::unique_ptr<CURLU, Url> url(curl_url());
    if (!url) {
        throw std::bad_alloc();
    }
    if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
        return "";
    }
    const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
    std::string host = part_of(url.get(), CURLUPART_HOST);
    if (host.empty() || (scheme != "http" && scheme != "https")) {
        return "";
    }
    std::transform(host.begin(), host.end(), host.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return scheme + "://" + host + ":" + part_of(url.get(), CURLUPART_PORT);
}

} // namespace lawnd
