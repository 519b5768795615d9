// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The memory that a ping-pong takes while it runs: what the kernel says of it,
// and how often it has allocated (count_allocations.c).

#ifndef LAWN_TEST_E2E_FOOTPRINT_H
#define LAWN_TEST_E2E_FOOTPRINT_H

#include <gtest/gtest.h>

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace e2e
{

class Footprint
{
public:
    // Programs started from now on are counted, or are not.
    static void count_allocations(bool enabled)
    {
        setenv("ALLOCATION_COUNTS", "/tmp", 1);
        if (enabled) {
            setenv("LD_PRELOAD", LAWN_COUNT_ALLOCATIONS, 1);
        } else {
            unsetenv("LD_PRELOAD");
        }
    }

    explicit Footprint(pid_t pid)
        : pid_(pid), counts_("/tmp/allocations." + std::to_string(pid)),
          allocations_(allocations()), data_(status_kb("VmData")),
          resident_(status_kb("RssAnon")), latest_data_(data_),
          latest_resident_(resident_)
    {
        EXPECT_GT(allocations_, 0U) << "not counted";
        EXPECT_GT(resident_, 0U);
    }

    ~Footprint()
    {
        unlink(counts_.c_str());
    }

    Footprint(const Footprint &) = delete;
    Footprint &operator=(const Footprint &) = delete;

    // Takes a look, if the process is there to be looked at.
    void look()
    {
        if (const uint64_t data = status_kb("VmData")) {
            latest_data_ = data;
            latest_resident_ = status_kb("RssAnon");
        }
    }

    // Since the first look; of the allocations, until the process ended. A page
    // of the histograms is resident once something falls into it.
    void expect_flat() const
    {
        EXPECT_EQ(allocations(), allocations_);
        EXPECT_EQ(latest_data_, data_) << "kB";
        EXPECT_LE(latest_resident_, resident_ + 64) << "kB";
    }

private:
    uint64_t allocations() const
    {
        uint64_t count = 0;
        std::ifstream file(counts_, std::ios::binary);
        file.read(reinterpret_cast<char *>(&count), sizeof(count));
        return count;
    }

    // 0 if there is no such process, or it has no memory any more.
    uint64_t status_kb(const std::string &name) const
    {
        std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
        for (std::string line; std::getline(file, line);) {
            if (line.rfind(name + ":", 0) == 0) {
                return strtoull(&line[name.size() + 1], nullptr, 10);
            }
        }
        return 0;
    }

    const pid_t pid_;
    const std::string counts_;
    const uint64_t allocations_;
    const uint64_t data_;
    const uint64_t resident_;
    uint64_t latest_data_;
    uint64_t latest_resident_;
};

} // namespace e2e

#endif
