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
#include <cstring>
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
          allocations_(allocations()), data_(data_kb()), latest_data_(data_)
    {
        EXPECT_GT(allocations_, 0U) << "not counted";
        EXPECT_GT(data_, 0U);
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
        if (const uint64_t data = data_kb()) {
            latest_data_ = data;
        }
    }

    // Since the first look; of the allocations, until the process ended, which
    // gives back what it has. How much of the data is resident says nothing: a
    // page is, once touched.
    void expect_flat() const
    {
        EXPECT_EQ(allocations(), allocations_);
        EXPECT_LE(latest_data_, data_) << "kB";
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
    uint64_t data_kb() const
    {
        std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
        for (std::string line; std::getline(file, line);) {
            if (line.rfind("VmData:", 0) == 0) {
                return strtoull(line.c_str() + strlen("VmData:"), nullptr, 10);
            }
        }
        return 0;
    }

    const pid_t pid_;
    const std::string counts_;
    const uint64_t allocations_;
    const uint64_t data_;
    uint64_t latest_data_;
};

} // namespace e2e

#endif
