// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An engine on virtual time whose timers are recorded, and a directory for the
// traces.

#ifndef LAWN_TEST_UNIT_TRACE_FIXTURE_H
#define LAWN_TEST_UNIT_TRACE_FIXTURE_H

#include "../engine/engine_fixture.h"

#include "engine/trace.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace lawn_test
{

inline const std::string header =
    "lawn-trace 2 ticks_per_sec 1000000000 budget 64\n";

// More than any buffer holds.
inline void run_much(lawn_engine_t *engine)
{
    lawn_timer_t timer = {};
    for (unsigned i = 0; i < 20'000; ++i) {
        lawn_engine_start(engine, &timer, 1000 + i);
        lawn_engine_progress(engine);
    }
    lawn_engine_stop(engine, &timer);
}

class Trace : public Engine
{
protected:
    Trace()
    {
        char name[] = "/tmp/lawn-trace-XXXXXX";
        directory_ = mkdtemp(name) ? name : "";
        lawn::trace_count = 0;
    }

    ~Trace() override
    {
        set_trace(nullptr);
        std::filesystem::remove_all(directory_);
    }

    std::string path_of(const std::string &name) const
    {
        return directory_ + "/" + name;
    }

    // A name in the directory; nullptr: none.
    void set_trace(const char *name)
    {
        if (name) {
            setenv("LAWN_TRACE", path_of(name).c_str(), 1);
        } else {
            unsetenv("LAWN_TRACE");
        }
    }

    // From here on `engine_` is one that is recorded.
    void record()
    {
        set_trace("trace");
        create();
        set_trace(nullptr);
    }

    // Ends it: what was recorded.
    std::string finish()
    {
        lawn_engine_destroy(engine_);
        engine_ = nullptr;
        return text("trace");
    }

    std::string text(const std::string &name) const
    {
        std::ifstream file(path_of(name));
        EXPECT_TRUE(file.good()) << name;
        return {std::istreambuf_iterator<char>(file), {}};
    }

    std::string write(const std::string &name, const std::string &text) const
    {
        std::ofstream(path_of(name)) << text;
        return path_of(name);
    }

    // With timers A, B, ... for their addresses, in the order of appearance.
    static std::string named(const std::string &trace)
    {
        std::istringstream lines(trace);
        std::map<std::string, char> names;
        std::string all;
        for (std::string line; std::getline(lines, line);) {
            std::istringstream fields(line);
            std::string time;
            std::string event;
            std::string timer;
            fields >> time >> event >> timer;
            if (event == "start" || event == "stop" || event == "pause" ||
                event == "fire") {
                const char next = static_cast<char>('A' + names.size());
                const char name = names.try_emplace(timer, next).first->second;
                line.replace(line.find(timer, time.size() + event.size()),
                             timer.size(), 1, name);
            }
            all += line + "\n";
        }
        return all;
    }

    std::string directory_;
};

} // namespace lawn_test

#endif
