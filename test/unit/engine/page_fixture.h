// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An engine on virtual time with a page of statistics, and lawn_top.

#ifndef LAWN_TEST_UNIT_PAGE_FIXTURE_H
#define LAWN_TEST_UNIT_PAGE_FIXTURE_H

#include "../../hang.h"
#include "engine_fixture.h"

#include "pages.h"

#include <atomic>
#include <fstream>
#include <iterator>

#include <sys/wait.h>

namespace lawn_test
{

constexpr lawn_time_t interval = 10 * msec;

class Page : public Engine
{
protected:
    Page()
    {
        params_.stats_name = "page \"test\"";
        create();
        pass();
    }

    ~Page() override
    {
        pages_close(&pages_);
    }

    // The pages of this process, as they are now.
    size_t open()
    {
        pages_close(&pages_);
        EXPECT_TRUE(pages_open(&pages_, getpid()));
        pages_read(&pages_);
        return pages_.count;
    }

    const lawn_page_state_t &state()
    {
        EXPECT_EQ(open(), 1U);
        return pages_.pages[0].state;
    }

    void start_timers(unsigned count, lawn_time_t ttl)
    {
        for (unsigned i = 0; i < count; ++i) {
            start_timer(ttl);
        }
    }

    // Makes passes of 9 ms, which are no stalls, until `work`, which another
    // thread does, has ended. Waits `pause_ms` after each.
    template <class Work> void pass_while(Work work, long pause_ms = 1)
    {
        std::atomic<bool> is_over = false;
        Thread thread("the reader", [&] {
            work();
            is_over = true;
        });
        const Waiting waiting("the reader", "to have read");
        while (!is_over) {
            pass_at(now_ + 9 * msec);
            got_on(); // also while a program that it waits for is slow
            sleep_msec(pause_ms);
        }
        thread.join();
    }

    // What lawn_top prints; its status is in status_.
    std::string top(const std::string &arguments)
    {
        const char *const program = getenv("LAWN_TOP");
        if (program == nullptr) {
            ADD_FAILURE() << "LAWN_TOP is to be the path of lawn_top";
            return {};
        }
        const std::string command =
            "{ " + std::string(program) + " " + arguments + "; } 2>&1";
        FILE *const pipe = popen(command.c_str(), "r");
        std::string text;
        for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) {
            text += static_cast<char>(c);
        }
        status_ = WEXITSTATUS(pclose(pipe));
        return text;
    }

    // Writes the page of a process that no longer exists, of the PID namespace
    // `where`. Returns its path.
    std::string leave_page(uint64_t where, pid_t *pid_p)
    {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        EXPECT_EQ(waitpid(child, nullptr, 0), child);
        EXPECT_EQ(open(), 1U);
        lawn_page_t page = *pages_.pages[0].shared;
        page.owner.pid = child;
        page.owner.pid_namespace = where;
        const std::string path = LAWN_PAGE_DIRECTORY "/" LAWN_PAGE_PREFIX +
                                 std::to_string(child) + ".0";
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char *>(&page), sizeof(page));
        EXPECT_TRUE(file.flush().good());
        *pid_p = child;
        return path;
    }

    std::string top_while_passing(const std::string &arguments,
                                  long pause_ms = 1)
    {
        std::string text;
        pass_while([&] { text = top(arguments); }, pause_ms);
        return text;
    }

    static double number_after(const std::string &text, const std::string &key)
    {
        const size_t at = text.find(key);
        EXPECT_NE(at, std::string::npos) << key;
        return at == std::string::npos ? -1
                                       : atof(text.c_str() + at + key.size());
    }

    pages_t pages_ = {};
    int status_ = -1;
};

} // namespace lawn_test

#endif
