// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Polls, timers, and the program between passes, add and remove any sources, at
// random, on virtual time. The model is the sources that there are, in the
// order of adding, and which of them this pass has yet to poll.

#include "../../environment.h"
#include "engine_fixture.h"

#include <algorithm>
#include <random>

using namespace lawn_test;

namespace
{

TEST_F(Engine, SourcesMayComeAndGoAtAnyTime)
{
    struct Source {
        size_t number;
        lawn_source_t *source;
        int fd; // -1, or the one that others have, too
    };
    const uint64_t seed = environment("LAWN_TEST_SEED", 1);
    SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int fds[] = {-1, -1, event_fd(1)};
    std::vector<Source> sources;
    std::vector<size_t> to_poll;
    const auto poll_source = [&](size_t number) {
        const bool is_next = !to_poll.empty() && to_poll.front() == number;
        EXPECT_TRUE(is_next) << "source " << number;
        if (is_next) {
            to_poll.erase(to_poll.begin());
        }
        then_();
        return 0U;
    };
    then_ = [&] {
        while (random() % 3 == 0) {
            if (sources.size() < random() % 8) {
                const size_t number = functions_.size();
                const int fd = fds[random() % 3];
                sources.push_back(
                    {number, add([=] { return poll_source(number); }, fd), fd});
            } else if (!sources.empty()) {
                const size_t victim = random() % sources.size();
                const auto it =
                    sources.begin() + static_cast<ptrdiff_t>(victim);
                lawn_engine_remove(engine_, it->source);
                to_poll.erase(
                    std::remove(to_poll.begin(), to_poll.end(), it->number),
                    to_poll.end());
                sources.erase(it);
            }
        }
    };
    const auto has_fd = [](const Source &source) { return source.fd != -1; };
    pass();
    for (uint64_t i = scaled(10'000); i != 0 && !HasFailure(); --i) {
        const unsigned rounds = random() % 4 == 0 ? 2 : 1; // 2: a stall
        for (unsigned round = 0; round < rounds; ++round) {
            for (const Source &source : sources) {
                to_poll.push_back(source.number);
            }
        }
        if (random() % 2 == 0) {
            start_timer(0);
        }
        pass_at(now_ + (rounds == 2 ? sec : 1));
        EXPECT_TRUE(to_poll.empty()) << "source " << to_poll.front();
        EXPECT_EQ(is_readable(0),
                  std::any_of(sources.begin(), sources.end(), has_fd));
        then_();
    }
    EXPECT_GE(functions_.size(), scaled(10'000));
}

} // namespace
