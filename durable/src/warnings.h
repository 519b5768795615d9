// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is wrong with the store although it answers requests: a right is
// missing, the server may drop timers, or timers were lost. One line for each
// matter at each place.

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
    enum class Matter { server, policy, publishing, looking, loss };

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

    // All in one line, but losses; "" if there are none.
    std::string text() const
    {
        return text(Matter::server, Matter::looking);
    }
    std::string losses() const
    {
        return text(Matter::loss, Matter::loss);
    }

private:
    std::string text(Matter first, Matter last) const
    {
        std::string line;
        for (const auto &[about, text] : texts_) {
            if (about.first >= first && about.first <= last) {
                line += (line.empty() ? "" : "; ") + about.second + ": " + text;
            }
        }
        return line;
    }

    std::map<std::pair<Matter, std::string>, std::string> texts_;
};

} // namespace lawn::durable

#endif
