// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the clock is chosen by, on made-up machines, and the clock that this
// process has.

#include <lawn/lawn.h>

#include "clock/announced.h"
#include "clock/convert.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

using namespace lawn;

namespace
{

// ---- which counter

TEST(ClockSource, TscIsUsedWhereTheKernelDoesNotDistrustIt)
{
    struct {
        const char *clocksource;
        bool if_invariant;
        bool if_not;
    } const table[] = {
        {"tsc", true, true},
        {"tsc-early", true, false},
        {"kvm-clock", true, false},
        {"xen", true, false},
        {"hyperv_clocksource_tsc_page", true, false},
        {"hyperv_clocksource_msr", false, false},
        {"hpet", false, false},
        {"acpi_pm", false, false},
        {"jiffies", false, false},
        {"refined-jiffies", false, false},
        {"tscx", false, false},
        {"", false, false},
        {nullptr, true, false},
    };
    for (const auto &row : table) {
        SCOPED_TRACE(row.clocksource ? row.clocksource : "unreadable");
        for (const char *other : {"", "counter", "CLOCK_GETTIME", "clock"}) {
            EXPECT_EQ(tsc_is_usable(true, row.clocksource, other),
                      row.if_invariant);
        }
        EXPECT_EQ(tsc_is_usable(true, row.clocksource, nullptr),
                  row.if_invariant);
        EXPECT_EQ(tsc_is_usable(false, row.clocksource, nullptr), row.if_not);
        EXPECT_FALSE(tsc_is_usable(true, row.clocksource, "clock_gettime"));
        EXPECT_FALSE(tsc_is_usable(false, row.clocksource, "clock_gettime"));
    }
}

// ---- announced rates

// A processor that answers what it was told to, and nonsense to what a program
// must not ask, as real ones do beyond their highest leaf.
using Processor = std::map<uint32_t, CpuidLeaf>;

CpuidLeaf ask(void *arg, uint32_t leaf)
{
    const auto *processor = static_cast<Processor *>(arg);
    const auto found = processor->find(leaf);
    if (found == processor->end()) {
        return {7, 7, 7, 7};
    }
    return found->second;
}

TEST(ClockAnnounced, Invariant)
{
    Processor yes = {{0x80000000, {0x80000008, 0, 0, 0}},
                     {0x80000007, {0, 0, 0, 1U << 8}}};
    EXPECT_TRUE(tsc_is_invariant(ask, &yes));
    Processor no = {{0x80000000, {0x80000008, 0, 0, 0}},
                    {0x80000007, {~0U, ~0U, ~0U, ~(1U << 8)}}};
    EXPECT_FALSE(tsc_is_invariant(ask, &no));
    Processor old = {{0x80000000, {0x80000004, 0, 0, 0}},
                     {0x80000007, {~0U, ~0U, ~0U, ~0U}}};
    EXPECT_FALSE(tsc_is_invariant(ask, &old));
}

TEST(ClockAnnounced, Cpuid)
{
    // 24 MHz * 216 / 2, and products that do not fit in 32 bits.
    Processor skylake = {{0, {0x16, 0, 0, 0}}, {0x15, {2, 216, 24000000, 0}}};
    EXPECT_EQ(rate_by_cpuid(ask, &skylake).ticks_per_sec, 2592000000.0);
    EXPECT_EQ(rate_by_cpuid(ask, &skylake).method, LAWN_CLOCK_BY_CPUID);
    EXPECT_LT(rate_by_cpuid(ask, &skylake).error_ppm, 0.1);
    Processor odd = {{0, {0x15, 0, 0, 0}}, {0x15, {3, 250, 38400000, 0}}};
    EXPECT_EQ(rate_by_cpuid(ask, &odd).ticks_per_sec, 3200000000.0);
    Processor thirds = {{0, {0x15, 0, 0, 0}}, {0x15, {3, 200, 25000000, 0}}};
    EXPECT_DOUBLE_EQ(rate_by_cpuid(ask, &thirds).ticks_per_sec, 5e9 / 3);

    for (const CpuidLeaf leaf :
         {CpuidLeaf{0, 216, 24000000, 0}, CpuidLeaf{2, 0, 24000000, 0},
          CpuidLeaf{2, 216, 0, 0}}) {
        Processor partly = {{0, {0x16, 0, 0, 0}}, {0x15, leaf}};
        EXPECT_EQ(rate_by_cpuid(ask, &partly).ticks_per_sec, 0.0);
    }
    Processor old = {{0, {0x14, 0, 0, 0}}, {0x15, {2, 216, 24000000, 0}}};
    EXPECT_EQ(rate_by_cpuid(ask, &old).ticks_per_sec, 0.0);
}

TEST(ClockAnnounced, Hypervisor)
{
    const CpuidLeaf guest = {0, 0, 1U << 31, 0};
    Processor vm = {{1, guest},
                    {0x40000000, {0x40000010, 0, 0, 0}},
                    {0x40000010, {2600001, 66000, 0, 0}}};
    EXPECT_EQ(rate_by_hypervisor(ask, &vm).ticks_per_sec, 2600001000.0);
    EXPECT_EQ(rate_by_hypervisor(ask, &vm).method, LAWN_CLOCK_BY_HYPERVISOR);
    EXPECT_NEAR(rate_by_hypervisor(ask, &vm).error_ppm, 0.385, 0.001);

    Processor metal = vm;
    metal[1] = {~0U, ~0U, ~(1U << 31), ~0U};
    EXPECT_EQ(rate_by_hypervisor(ask, &metal).ticks_per_sec, 0.0);
    Processor kvm = vm;
    kvm[0x40000000] = {0x40000001, 0, 0, 0};
    EXPECT_EQ(rate_by_hypervisor(ask, &kvm).ticks_per_sec, 0.0);
    Processor silent = vm;
    silent[0x40000010] = {0, 0, 0, 0};
    EXPECT_EQ(rate_by_hypervisor(ask, &silent).ticks_per_sec, 0.0);
}

TEST(ClockAnnounced, PerfPage)
{
    perf_event_mmap_page page = {};
    page.cap_user_time = 1;
    page.time_mult = 1U << 30;
    page.time_shift = 31;
    EXPECT_EQ(rate_by_perf(&page).ticks_per_sec, 2e9);
    EXPECT_EQ(rate_by_perf(&page).method, LAWN_CLOCK_BY_PERF);
    page.time_mult = 3;
    page.time_shift = 33;
    EXPECT_DOUBLE_EQ(rate_by_perf(&page).ticks_per_sec, 1e9 * 8589934592 / 3);

    perf_event_mmap_page changing = page;
    changing.lock = 1;
    EXPECT_EQ(rate_by_perf(&changing).ticks_per_sec, 0.0);
    perf_event_mmap_page refused = page;
    refused.cap_user_time = 0;
    refused.cap_user_rdpmc = 1;
    EXPECT_EQ(rate_by_perf(&refused).ticks_per_sec, 0.0);
    perf_event_mmap_page empty = page;
    empty.time_mult = 0;
    EXPECT_EQ(rate_by_perf(&empty).ticks_per_sec, 0.0);
    perf_event_mmap_page broken = page;
    broken.time_shift = 64;
    EXPECT_EQ(rate_by_perf(&broken).ticks_per_sec, 0.0);
}

TEST(ClockAnnounced, PerfPageIsReadWhole)
{
    // 2 GHz, written in two ways that must not be mixed.
    perf_event_mmap_page page = {};
    page.cap_user_time = 1;
    page.time_mult = 1U << 30;
    page.time_shift = 31;
    std::atomic<bool> done{false};
    std::thread kernel([&] {
        for (uint32_t i = 0; !done; ++i) {
            __atomic_store_n(&page.lock, 2 * i + 1, __ATOMIC_SEQ_CST);
            const bool odd = i & 1;
            __atomic_store_n(&page.time_mult, odd ? 1U << 20 : 1U << 30,
                             __ATOMIC_SEQ_CST);
            __atomic_store_n(&page.time_shift,
                             static_cast<uint16_t>(odd ? 21 : 31),
                             __ATOMIC_SEQ_CST);
            __atomic_store_n(&page.lock, 2 * i + 2, __ATOMIC_SEQ_CST);
        }
    });
    int read = 0;
    for (int i = 0; i < 100000; ++i) {
        const double rate = rate_by_perf(&page).ticks_per_sec;
        read += rate == 2e9;
        if (rate != 0 && rate != 2e9) {
            ADD_FAILURE() << rate;
            break;
        }
    }
    done = true;
    kernel.join();
    EXPECT_GT(read, 0);
}

TEST(ClockAnnounced, Firmware)
{
    EXPECT_EQ(rate_by_firmware(62500000).ticks_per_sec, 62.5e6);
    EXPECT_EQ(rate_by_firmware(62500000).method, LAWN_CLOCK_BY_FIRMWARE);
    EXPECT_EQ(rate_by_firmware(0).ticks_per_sec, 0.0);
}

// ---- this process's clock

TEST(Clock, TellsWhatItIs)
{
    lawn_clock_info_t info;
    EXPECT_EQ(lawn_clock_query(nullptr), LAWN_ERR_INVALID_PARAM);
    ASSERT_EQ(lawn_clock_query(&info), LAWN_OK);
    EXPECT_EQ(info.ticks_per_sec, lawn_time_sec_value());
    EXPECT_GE(info.ticks_per_sec, 1e6);
    EXPECT_LE(info.ticks_per_sec, 1e10);
    EXPECT_GE(info.error_ppm, 0);
    EXPECT_LT(info.error_ppm, 2000);
    EXPECT_EQ(lawn_clock_is_counter, info.source != LAWN_CLOCK_CLOCK_GETTIME);
    EXPECT_EQ(info.source == LAWN_CLOCK_CLOCK_GETTIME,
              info.method == LAWN_CLOCK_BY_DEFINITION);
}

TEST(Clock, RunsForward)
{
    const lawn_time_t first = lawn_get_time();
    lawn_time_t now = first;
    for (int i = 0; i < 10000000 && now <= first; ++i) {
        now = lawn_get_time();
    }
    EXPECT_GT(now, first);
    // The function behind the inline one reads the same clock.
    const lawn_time_t second = lawn_clock_read();
    EXPECT_LT(second - now + lawn_time_from_sec(1), lawn_time_from_sec(3600));
}

TEST(Clock, UnitsAreThoseOfTheirNames)
{
    const double rate = lawn_time_sec_value();
    EXPECT_EQ(lawn_time_from_sec(7), ticks_from(7, 1, rate));
    EXPECT_EQ(lawn_time_from_msec(7), ticks_from(7, 1000, rate));
    EXPECT_EQ(lawn_time_from_usec(7), ticks_from(7, 1000000, rate));
    EXPECT_EQ(lawn_time_from_nsec(7), ticks_from(7, 1000000000, rate));
    EXPECT_EQ(lawn_time_to_sec(777), ticks_to(777, 1, rate));
    EXPECT_EQ(lawn_time_to_msec(777), ticks_to(777, 1000, rate));
    EXPECT_EQ(lawn_time_to_usec(777), ticks_to(777, 1000000, rate));
    EXPECT_EQ(lawn_time_to_nsec(777), ticks_to(777, 1000000000, rate));
}

TEST(Clock, Names)
{
    EXPECT_STREQ(lawn_clock_source_name(LAWN_CLOCK_TSC), "tsc");
    EXPECT_STREQ(lawn_clock_source_name(LAWN_CLOCK_CNTVCT), "cntvct");
    EXPECT_STREQ(lawn_clock_source_name(LAWN_CLOCK_RDTIME), "rdtime");
    EXPECT_STREQ(lawn_clock_source_name(LAWN_CLOCK_CLOCK_GETTIME),
                 "clock_gettime");
    EXPECT_STREQ(lawn_clock_method_name(LAWN_CLOCK_BY_CPUID), "cpuid-0x15");
    EXPECT_STREQ(lawn_clock_method_name(LAWN_CLOCK_BY_CALIBRATION),
                 "calibration");
    for (int i = -1; i < 10; ++i) {
        EXPECT_NE(lawn_clock_source_name(static_cast<lawn_clock_source_t>(i)),
                  nullptr);
        EXPECT_NE(lawn_clock_method_name(static_cast<lawn_clock_method_t>(i)),
                  nullptr);
    }
}

} // namespace
