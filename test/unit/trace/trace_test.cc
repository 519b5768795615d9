// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Recording: what LAWN_TRACE writes, and that the program never feels it.

#include "trace_fixture.h"

#include "engine/trace.h"

#include <lawn/keyed.h>
#include <lawn/observer.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include <sys/stat.h>

using namespace lawn_test;

namespace
{

unsigned allocator_calls;
bool has_decimal_comma; // snprintf(), as in some locales

int print(char *text, size_t size, const char *format, va_list arguments)
{
    const int length = vsnprintf(text, size, format, arguments);
    if (has_decimal_comma) {
        std::replace(text, text + strnlen(text, size), '.', ',');
    }
    return length;
}

} // namespace

extern "C" {

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    ++allocator_calls;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    ++allocator_calls;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    ++allocator_calls;
    return __real_realloc(memory, size);
}

int __wrap_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = print(text, size, format, arguments);
    va_end(arguments);
    return length;
}

// The same where the build is fortified.
int __wrap___snprintf_chk(char *text, size_t size, int, size_t,
                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = print(text, size, format, arguments);
    va_end(arguments);
    return length;
}
}

namespace
{

TEST_F(Trace, RecordsWhatIsDone)
{
    record();
    lawn_t *const lawn = lawn_engine_lawn(engine_);
    start_timer(500);
    pass_at(start + 50);
    pass_at(start + 100);
    pass_at(start + 300);
    EXPECT_EQ(pass_at(start + 500), "t");
    start_timer(LAWN_TIME_INFINITY);
    lawn_timer_pause(lawn, &timers_[1].timer);
    now_ += 7;
    pass();
    lawn_timer_start(lawn, &timers_[1].timer, now_ + 3, 0);
    lawn_engine_stop(engine_, &timers_[1].timer);
    lawn_timer_stop(lawn, &timers_[0].timer); // idle, but a call all the same
    EXPECT_EQ(named(finish()), header + "0 start A 500\n"
                                        "300 poll 3\n"
                                        "200 poll 1\n"
                                        "0 fire A\n"
                                        "0 start B inf\n"
                                        "0 pause B\n"
                                        "7 poll 1\n"
                                        "3 start B 0\n"
                                        "0 stop B\n"
                                        "0 stop A\n");
}

// And not when the counter was 0.
TEST_F(Trace, BeginsWhenTheEngineDoes)
{
    set_trace(nullptr);
    create();
    EXPECT_EQ(lawn_engine_trace(engine_, path_of("trace").c_str()), LAWN_OK);
    pass_at(start + 10);
    start_timer(500);
    EXPECT_EQ(named(finish()), header + "10 poll 1\n"
                                        "0 start A 500\n");
}

TEST_F(Trace, HasADecimalPointInEachLocale)
{
    params_.ticks_per_sec = 2.5;
    has_decimal_comma = true;
    record();
    has_decimal_comma = false;
    EXPECT_EQ(finish(), "lawn-trace 2 ticks_per_sec 2.5 budget 64\n");
}

// Calls that end in the header when nobody records.
TEST_F(Trace, RecordsWhatIsInlineElsewhere)
{
    record();
    lawn_t *const lawn = lawn_engine_lawn(engine_);
    lawn_timer_t timer = {};
    for (const lawn_time_t now : {start, start + 1, start + 2}) {
        lawn_timer_start(lawn, &timer, now, 500);
    }
    EXPECT_TRUE(lawn_timer_pause(lawn, &timer));
    EXPECT_FALSE(lawn_timer_pause(lawn, &timer));
    lawn_timer_start(lawn, &timer, start + 3, 500);
    EXPECT_EQ(lawn_count(lawn), 1U);
    EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    EXPECT_EQ(lawn_advance(lawn, start + 502, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn, start + 503, 0), 1U);
    EXPECT_EQ(named(finish()), header + "0 start A 500\n"
                                        "1 start A 500\n"
                                        "1 start A 500\n"
                                        "0 pause A\n"
                                        "0 pause A\n"
                                        "1 start A 500\n"
                                        "499 poll 1\n"
                                        "1 poll 1\n"
                                        "0 fire A\n");
}

TEST_F(Trace, PollsBeforeOneThatFiresKeepTheirTime)
{
    record();
    start_timer(500);
    pass_at(start + 10);
    pass_at(start + 20);
    pass_at(start + 490);
    pass_at(start + 600);
    pass_at(start + 601); // idle to the end
    pass_at(start + 603);
    EXPECT_EQ(named(finish()), header + "0 start A 500\n"
                                        "490 poll 3\n"
                                        "110 poll 1\n"
                                        "0 fire A\n"
                                        "3 poll 2\n");
}

TEST_F(Trace, TimeDoesNotGoBackAfterACallback)
{
    record();
    start_timer(5);
    start_timer(5);
    then_ = [this] {
        now_ += 100;
        then_ = nullptr;
        start_timer(9);
    };
    EXPECT_EQ(pass_at(start + 5), "tt");
    EXPECT_EQ(named(finish()), header + "0 start A 5\n"
                                        "0 start B 5\n"
                                        "5 poll 1\n"
                                        "0 fire A\n"
                                        "100 start C 9\n"
                                        "0 fire B\n");
}

TEST_F(Trace, RecordsKeyedTimersAndDrains)
{
    record();
    lawn_keyed_t *keyed = nullptr;
    ASSERT_EQ(lawn_keyed_create(lawn_engine_lawn(engine_), 2, &keyed), LAWN_OK);
    lawn_keyed_start(keyed, start, 10, 77, nullptr);
    lawn_keyed_start(keyed, start + 1, 10, 77, nullptr);
    lawn_drain(lawn_engine_lawn(engine_), nullptr);
    lawn_keyed_destroy(keyed);
    EXPECT_EQ(named(finish()), header + "0 start A 10\n"
                                        "1 start A 10\n"
                                        "0 stop A\n");
}

TEST_F(Trace, TellsTheNextDeadlineAsEver)
{
    record();
    start_timer(500);
    EXPECT_LE(lawn_engine_next(engine_), start + 500);
    EXPECT_GT(lawn_engine_next(engine_), start + 250);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(lawn_engine_next(engine_), start + 500);
    pass_at(start + 499);
    EXPECT_GT(lawn_engine_next(engine_), now_);
    EXPECT_LE(lawn_engine_next(engine_), start + 500);
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
    pass_at(start + 500);
    EXPECT_EQ(lawn_engine_next(engine_), LAWN_TIME_INFINITY);
}

TEST_F(Trace, IsWrittenAfterASecond)
{
    record();
    start_timer(5 * sec);
    pass_at(start + sec / 2);
    EXPECT_EQ(text("trace"), header);
    pass_at(start + sec * 3 / 2);
    EXPECT_EQ(named(text("trace")), header + "0 start A 5000000000\n"
                                             "500000000 poll 1\n"
                                             "1000000000 stall 1000000000\n");
}

TEST_F(Trace, EachEngineHasAFile)
{
    std::vector<lawn_engine_t *> engines(3);
    set_trace("trace");
    for (lawn_engine_t *&engine : engines) {
        ASSERT_EQ(lawn_engine_create(&params_, &engine), LAWN_OK);
    }
    set_trace(nullptr);
    lawn_timer_t timer = {};
    lawn_engine_start(engines[1], &timer, 9);
    for (lawn_engine_t *engine : engines) {
        lawn_engine_destroy(engine);
    }
    EXPECT_EQ(text("trace"), header);
    EXPECT_EQ(named(text("trace.1")), header + "0 start A 9\n");
    EXPECT_EQ(text("trace.2"), header);
}

TEST_F(Trace, ReplacesWhatWasInTheFile)
{
    write("trace", std::string(100'000, '#'));
    record();
    EXPECT_EQ(finish(), header);
}

TEST_F(Trace, EmptyNameIsNone)
{
    ASSERT_EQ(setenv("LAWN_TRACE", "", 1), 0);
    create();
    EXPECT_EQ(lawn::trace_count, 0U);
}

TEST_F(Trace, CreateSaysWhenItCannotOpenTheFile)
{
    const unsigned live = allocations_.live;
    lawn_engine_t *engine = nullptr;
    for (const std::string &name :
         {std::string("none/trace"), std::string("."),
          std::string(PATH_MAX, 'x'), std::string(PATH_MAX + 1, '/')}) {
        set_trace(name.c_str());
        lawn::trace_count = 0;
        errno = 0;
        testing::internal::CaptureStderr();
        EXPECT_EQ(lawn_engine_create(&params_, &engine), LAWN_ERR_IO) << name;
        EXPECT_NE(errno, 0);
        const std::string said = testing::internal::GetCapturedStderr();
        const std::string told =
            "lawn: LAWN_TRACE=" + std::string(getenv("LAWN_TRACE")) + ": ";
        EXPECT_EQ(said.rfind(told, 0), 0U) << said.substr(0, 200);
        EXPECT_EQ(said.find('\n'), said.size() - 1) << said.substr(0, 200);
        EXPECT_EQ(engine, nullptr);
        EXPECT_EQ(allocations_.live, live);
    }
}

TEST_F(Trace, CreateSaysWhenItHasNoMemory)
{
    const unsigned live = allocations_.live;
    lawn_engine_t *engine = nullptr;
    set_trace("trace");
    allocations_.left = 2; // the engine and its lawn
    EXPECT_EQ(lawn_engine_create(&params_, &engine), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(allocations_.live, live);
    EXPECT_EQ(lawn::trace_count, 0U);
}

TEST_F(Trace, BeginsAndEndsWhileTimersRun)
{
    start_timer(500);
    start_timer(LAWN_TIME_INFINITY);
    pass_at(start + 100);
    const std::string path = path_of("trace");
    ASSERT_EQ(lawn_engine_trace(engine_, path.c_str()), LAWN_OK);
    pass_at(start + 500);
    ASSERT_EQ(lawn_engine_trace(engine_, nullptr), LAWN_OK);
    start_timer(7); // not recorded any more
    EXPECT_EQ(pass_at(now_ + 7), "t");
    const std::string trace = text("trace");
    EXPECT_NE(trace.find("\n400 poll 1\n0 fire "), std::string::npos);
    EXPECT_NE(trace.find(" 400\n"), std::string::npos);
    EXPECT_NE(trace.find(" inf\n"), std::string::npos);
    EXPECT_EQ(std::count(trace.begin(), trace.end(), '\n'), 5);
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
}

TEST_F(Trace, AnotherOneEndsTheFirst)
{
    record();
    start_timer(500);
    ASSERT_EQ(lawn_engine_trace(engine_, path_of("second").c_str()), LAWN_OK);
    lawn_engine_stop(engine_, &timers_[0].timer);
    EXPECT_EQ(lawn_engine_trace(engine_, directory_.c_str()), LAWN_ERR_IO);
    EXPECT_EQ(errno, EISDIR);
    start_timer(1);
    EXPECT_EQ(named(text("trace")), header + "0 start A 500\n");
    EXPECT_EQ(named(text("second")), header + "0 start A 500\n0 stop A\n");
}

TEST_F(Trace, DoesNotBeginInACallback)
{
    start_timer(1);
    then_ = [this] {
        EXPECT_EQ(lawn_engine_trace(engine_, path_of("trace").c_str()),
                  LAWN_ERR_INVALID_PARAM);
    };
    EXPECT_EQ(pass_at(start + 1), "t");
    EXPECT_EQ(lawn_engine_trace(nullptr, nullptr), LAWN_ERR_INVALID_PARAM);
}

// A lawn has one observer: a trace does not take the place of the program's.
TEST_F(Trace, LeavesTheProgramsObserverAlone)
{
    lawn_observer_t own = {[](lawn_observer_t *, lawn_event_t,
                              const lawn_timer_t *, lawn_time_t,
                              lawn_time_t) {}};
    pass_at(start);
    lawn_t *const lawn = lawn_engine_lawn(engine_);
    const std::string path = path_of("trace");
    ASSERT_EQ(lawn_observe(lawn, &own), LAWN_OK);
    EXPECT_EQ(lawn_engine_trace(engine_, path.c_str()), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_engine_trace(engine_, nullptr), LAWN_OK);
    EXPECT_EQ(lawn->observer, &own);
    ASSERT_EQ(lawn_unobserve(lawn, &own), LAWN_OK);
    ASSERT_EQ(lawn_engine_trace(engine_, path.c_str()), LAWN_OK);
    EXPECT_EQ(lawn_observe(lawn, &own), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_unobserve(lawn, &own), LAWN_ERR_NO_ELEM);
    start_timer(5);
    EXPECT_EQ(lawn_engine_trace(engine_, nullptr), LAWN_OK);
    EXPECT_EQ(named(text("trace")), header + "0 start A 5\n");
}

TEST_F(Trace, AllocatesNothing)
{
    record();
    allocator_calls = 0;
    run_much(engine_);
    EXPECT_EQ(allocator_calls, 0U);
    EXPECT_GT(finish().size(), 200'000U);
}

TEST_F(Trace, EndsUnfeltWhenTheDiskIsFull)
{
    ASSERT_EQ(setenv("LAWN_TRACE", "/dev/full", 1), 0);
    create();
    run_much(engine_);
    start_timer(5);
    EXPECT_EQ(pass_at(start + 5), "t");
}

TEST_F(Trace, EndsUnfeltAtTheLimitOfTheFilesSize)
{
    record();
    rlimit old_limit;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const rlimit limit = {100'000, old_limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    errno = 0;
    run_much(engine_); // SIGXFSZ would end the test
    EXPECT_EQ(errno, 0);
    sigset_t blocked;
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    EXPECT_EQ(sigismember(&blocked, SIGXFSZ), 0);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const std::string recorded = finish();
    EXPECT_GT(recorded.size(), 50'000U);
    EXPECT_LE(recorded.size(), 100'000U);
    EXPECT_EQ(recorded.back(), '\n');
}

TEST_F(Trace, EndsUnfeltWhenAPipeBreaks)
{
    const std::string path = path_of("trace");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    record();
    close(reader);
    run_much(engine_); // SIGPIPE would end the test
    start_timer(5);
    EXPECT_EQ(pass_at(now_ + 5), "t");
}

// A signal that the program has blocked, and that waits, is not the trace's.
TEST_F(Trace, LeavesASignalThatWaits)
{
    sigset_t pipe_signal;
    sigset_t old_mask;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &pipe_signal, &old_mask), 0);
    raise(SIGPIPE);
    const std::string path = path_of("trace");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    record();
    close(reader);
    run_much(engine_);
    sigset_t waiting;
    EXPECT_EQ(sigpending(&waiting), 0);
    EXPECT_EQ(sigismember(&waiting, SIGPIPE), 1);
    const timespec at_once = {0, 0};
    EXPECT_EQ(sigtimedwait(&pipe_signal, nullptr, &at_once), SIGPIPE);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &old_mask, nullptr), 0);
}

} // namespace
