// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What atomics.h is worth: a thread hands a plain variable over to another by
// an atomic flag. Helgrind is to report the variable when the release or the
// acquire is missing, and nothing when both are there.

#include <atomic>
#include <string>
#include <thread>

int main(int argc, char **argv)
{
    const std::string how = argc > 1 ? argv[1] : "ordered";
    const bool no_release = how == "no-release";
    const bool no_acquire = how == "no-acquire";
    int plain = 0;
    std::atomic<bool> flag{false};
    std::thread giver([&] {
        plain = 1;
        flag.store(true, no_release ? std::memory_order_relaxed
                                    : std::memory_order_release);
    });
    while (!flag.load(no_acquire ? std::memory_order_relaxed
                                 : std::memory_order_acquire)) {
        std::this_thread::yield();
    }
    const bool is_right = plain == 1;
    giver.join();
    return is_right ? 0 : 1;
}
