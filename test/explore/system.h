// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The machine under explored threads: a clock that stands still while anybody
// can go on, timerfds, epoll, mutexes and threads. The linker has the library
// call these (--wrap).

#ifndef LAWN_TEST_EXPLORE_SYSTEM_H
#define LAWN_TEST_EXPLORE_SYSTEM_H

#include <lawn/base.h>
#include <lawn/time.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace explore
{

// For the explorer: nothing is open. Then, what each run begins with.
void reset_system();
void save_system();
void restore_system();
// After the last run: calls are what they are again.
void leave_system();

// Ticks, which are nanoseconds.
lawn_time_t now();
// A step of its own, if a thread calls it.
void pass_time(lawn_time_t ticks);
// So does the library's counter go back, from the time that now() tells.
void step_back(lawn_time_t ticks);

// All threads are on one processor from now on.
void use_one_processor(bool is_one);

// Whose process makes the calls of set_up(), and those of a thread.
void be_process(pid_t pid);
void put_into_process(unsigned thread, pid_t pid);
// All its threads have ended, this one as the last.
void end_process(unsigned thread);
// Another process has the number from now on.
void use_pid_again(pid_t pid);

// Where the file of shared memory is mapped.
void *shared_file();
// That have a name.
size_t fifo_count();

uint64_t hash_of_system();

// Memory of the run, whose use after it is released is reported.
lawn_allocator_t allocator();

} // namespace explore

#endif
