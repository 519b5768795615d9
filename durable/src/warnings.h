// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the store does not do for this client, although it answers requests: a
// right is missing, or the server may drop timers. One line for each matter at
// each place.

#ifndef LAWN_SRC_DURABLE_WARNINGS_H
#define LAWN_SRC_DURABLE_WARNINGS_H

#include <map>
#include <string>
#include <utility>

namespace lawn::durable
{

class Warnings
{
public:
    enum class Matter { server, policy, publishing };

    // An empty text: nothing is wrong there.
    void set(Matter matter, const std::string &place, std::string text)
    {
        if (text.empty()) {
            texts_.erase({matter, place});
        } else {
            texts_[{matter, place}] = std::move(text);
        }
    }

    // The server there is gone, or is another one when it is back.
    void forget(const std::string &place)
    {
        texts_.erase({Matter::server, place});
        texts_.erase({Matter::policy, place});
    }

    // All in one line; "" if there are none.
    std::string text() const
    {
        std::string line;
        for (const auto &[about, text] : texts_) {
            line += (line.empty() ? "" : "; ") + about.second + ": " + text;
        }
        return line;
    }

private:
    std::map<std::pair<Matter, std::string>, std::string> texts_;
};

} // namespace lawn::durable

#endif
