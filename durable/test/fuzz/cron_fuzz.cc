// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Cron expressions, on any text. What is refused is refused with one printable
// line. What is accepted gives times that grow, that are whole minutes of the
// zone, and that do not depend on where the search before them began.

#include "../../../test/fuzz/input.h"

#include "src/cron.h"

#include <algorithm>
#include <string>

using lawn::durable::Cron;

namespace
{

constexpr const char *zones[] = {"",
                                 "Europe/Berlin",
                                 "America/St_Johns",
                                 "Australia/Lord_Howe",
                                 "Pacific/Apia",
                                 "Antarctica/Troll",
                                 "Africa/Casablanca"};
constexpr int64_t usec = 1000000;
constexpr int64_t first_year = 40 * 365 * 86400 * usec; // LMT is past
constexpr int64_t end = int64_t{1} << 53;

std::string text_of(fuzz::Input *input)
{
    size_t length = input->byte();
    const uint8_t *const bytes = input->bytes(&length);
    return std::string(reinterpret_cast<const char *>(bytes), length);
}

void check_times(const Cron &cron, int64_t after, uint64_t offset)
{
    int64_t next = 0;
    for (unsigned i = 0; i < 8 && cron.next(after, &next); ++i) {
        FUZZ_CHECK(next > after && next < end);
        FUZZ_CHECK(next % usec == 0);
        FUZZ_CHECK(after < first_year || next % (60 * usec) == 0);
        // From anywhere between, the search finds the same.
        const auto gap = static_cast<uint64_t>(next - after);
        const int64_t between = after + static_cast<int64_t>(offset % gap);
        int64_t again = 0;
        FUZZ_CHECK(cron.next(between, &again) && again == next);
        FUZZ_CHECK(cron.next(next - 1, &again) && again == next);
        after = next;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz::Input input(data, size);
    const unsigned choice = input.byte();
    const uint64_t number = input.number();
    const uint64_t offset = input.number();
    std::string zone = zones[choice % std::size(zones)];
    if (choice >= 240) {
        zone = text_of(&input);
    }
    size_t length = input.left();
    const uint8_t *const line = input.bytes(&length);
    Cron cron;
    std::string error;
    const auto after = static_cast<int64_t>(number);
    if (cron.parse({reinterpret_cast<const char *>(line), length}, zone,
                   &error)) {
        FUZZ_CHECK(length <= Cron::longest_line && error.empty());
        int64_t next = 0;
        FUZZ_CHECK(cron.next(after, &next) || after < 0 ||
                   after >= end - 41 * 366 * 86400 * usec);
        check_times(cron, after, offset);
    } else {
        FUZZ_CHECK(!error.empty() && error.size() < 160);
        FUZZ_CHECK(std::all_of(error.begin(), error.end(),
                               [](char c) { return c >= ' ' && c <= '~'; }));
    }
    return 0;
}
