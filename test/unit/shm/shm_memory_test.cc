// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What others may have left in the shared memory: clients and owners that were
// killed between two of their instructions, at moments that are too short to
// meet, and clients that write what they should not. The test maps the memory
// and writes it itself.

#include "shm_fixture.h"

#include "shm/layout.h"

#include <lawn/stats.h>

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace
{

using lawn::shm::asleep;
using lawn::shm::Header;
using lawn::shm::Memory;
using lawn::shm::most_slots;

class ShmMemory : public TimedShmOwner
{
protected:
    ~ShmMemory() override
    {
        if (memory_.header) {
            munmap(memory_.header, memory_.size);
        }
    }

    // The owner, and its memory as any process may map it.
    void own()
    {
        ShmOwner::own();
        const size_t size = lawn::shm::size_of(params_.timers, params_.clients);
        const int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC);
        ASSERT_GE(fd, 0);
        void *const at =
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        ASSERT_NE(at, MAP_FAILED);
        memory_ = {static_cast<Header *>(at), size, params_.timers,
                   params_.clients};
    }

    Memory memory_ = {};
};

// Each field with which a client would reach beyond the memory.
TEST_F(ShmMemory, OfAnotherFormIsNotOpened)
{
    own();
    Header &header = *memory_.header;
    const Header good = header;
    const auto expect_refused = [&](auto spoil) {
        spoil();
        EXPECT_EQ(try_to_open(), LAWN_ERR_UNSUPPORTED);
        header.magic = good.magic;
        header.clock_source = good.clock_source;
        header.slot_count = good.slot_count;
        header.client_count = good.client_count;
    };
    expect_refused([&] { ++header.magic; });
    expect_refused([&] { ++header.clock_source; });
    expect_refused([&] { ++header.slot_count; });
    expect_refused([&] { --header.client_count; });
    expect_refused([&] { header.slot_count = most_slots + 1; });
    expect_refused([&] { header.client_count = most_slots + 1; });
    EXPECT_EQ(try_to_open(), LAWN_OK);
}

// The owner has its lock until its children have ended, too. They may outlive
// it, and its bell is gone before.
TEST_F(ShmMemory, WithoutABellIsOfNobody)
{
    own();
    const std::string bell = fifo_name(0);
    EXPECT_EQ(unlink(bell.c_str()), 0);
    EXPECT_EQ(try_to_open(), LAWN_ERR_NO_ELEM);
}

// A process may still have an id when the next owner has made the memory anew.
TEST_F(ShmMemory, AnIdIsNotThatOfAClientOfTheNextOwner)
{
    own();
    const uint64_t id = lawn_shm_id(open_client());
    const uint64_t owner_id = lawn_shm_owner_id(shm_);
    EXPECT_NE(owner_id, 0U);
    EXPECT_TRUE(lawn_shm_is_open(clients_[0], owner_id));
    EXPECT_TRUE(lawn_shm_is_open(clients_[0], 0)) << "the owner";
    lawn_shm_destroy(shm_);
    EXPECT_FALSE(lawn_shm_is_open(clients_[0], owner_id));
    EXPECT_FALSE(lawn_shm_is_open(clients_[0], 0));
    ASSERT_EQ(lawn_shm_create(engine_, path_.c_str(), &params_, &shm_),
              LAWN_OK);
    lawn_shm_client_t *const client = open_client();
    EXPECT_NE(lawn_shm_id(client), id);
    EXPECT_FALSE(lawn_shm_is_open(client, id));
    EXPECT_FALSE(lawn_shm_is_open(client, owner_id));
    EXPECT_FALSE(lawn_shm_is_open(clients_[0], lawn_shm_owner_id(shm_)));
}

// The owner ends before it has looked for clients, and one of them sleeps.
TEST_F(ShmMemory, AClientThatWasNotSeenIsWokenWhenTheOwnerEnds)
{
    own();
    open_client();
    const std::string name = fifo_name(1);
    const int fifo = open(name.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(fifo, 0);
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    char byte = 0;
    EXPECT_EQ(read(fifo, &byte, 1), 1);
    close(fifo);
}

// Between the lock and the place in the memory, the owner has ended.
TEST_F(ShmMemory, AClosedOwnerTakesNoClients)
{
    own();
    memory_.header->is_closed = 1;
    EXPECT_EQ(try_to_open(), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(files(), 2U) << "the memory and the bell";
}

// Two names of one path: the client's is so long that its own FIFO has none.
TEST_F(ShmMemory, IsNotOpenedByANameThatLeavesNoRoomForTheFifos)
{
    own();
    lawn_shm_client_t *client = nullptr;
    std::string path = path_;
    while (path.size() + 4 < PATH_MAX) {
        path.insert(path.rfind('/'), "/.");
    }
    EXPECT_EQ(lawn_shm_open(path.c_str(), clock, this, &client), LAWN_ERR_IO);
    EXPECT_EQ(errno, ENAMETOOLONG);
    EXPECT_EQ(client, nullptr);
    pass();
    EXPECT_EQ(stats().clients, 0U);
}

// A client has died, its pid went to another process at once, and the owner
// looks only then.
TEST_F(ShmMemory, AClientWhosePidIsAnotherProcessesIsDead)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    lawn_shm_start(client, timer, now_ + 10);
    ++memory_.client(1).birth;
    pass();
    EXPECT_EQ(stats().deaths, 1U);
    EXPECT_EQ(stats().clients, 0U);
    EXPECT_EQ(stats().timers, 0U);
}

// It was killed when it had just taken its place, and had not counted itself.
TEST_F(ShmMemory, AClientThatDiedBeforeItCountedItselfIsFound)
{
    own();
    pass();
    const pid_t dead = fork();
    if (dead == 0) {
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(dead, &status, 0), dead);
    memory_.client(2).pid = dead;
    for (unsigned i = 0; i < params_.clients; ++i) {
        now_ += 2'000'000; // each look at the clients comes a millisecond later
        pass();
    }
    EXPECT_EQ(stats().clients, 0U);
    EXPECT_EQ(stats().deaths, 1U);
}

// It has counted itself, and was killed before it rang.
TEST_F(ShmMemory, TheOwnerDoesNotSleepWhenAClientCouldNotRing)
{
    own();
    pass();
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    ++memory_.header->joined;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    pass();
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK) << "again";
    EXPECT_EQ(memory_.header->messages, asleep);
}

TEST_F(ShmMemory, TheOwnerDoesNotSleepWhenItsBudgetLeavesMessages)
{
    engine_params_.budget = 1;
    own();
    lawn_shm_client_t *const client = open_client();
    pass();
    for (unsigned i = 0; i < 3; ++i) {
        lawn_shm_start(client, alloc(client), now_ + 1'000'000'000);
    }
    for (unsigned i = 0; i < 2; ++i) {
        EXPECT_EQ(pass(), 1U);
        EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    }
    EXPECT_EQ(pass(), 1U);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
}

// They are of a client that has ended. If its slots stayed in the list, the
// next client's messages would be taken for those, and come twice.
TEST_F(ShmMemory, WhatABudgetLeavesOfADeadClientIsTaken)
{
    engine_params_.budget = 1;
    own();
    lawn_shm_client_t *const dead = open_client();
    pass();
    for (unsigned i = 0; i < 3; ++i) {
        lawn_shm_start(dead, alloc(dead), now_ + 1'000'000'000);
    }
    lawn_shm_close(dead);
    clients_.pop_back();
    for (unsigned i = 0; i < 3 && stats().clients != 0; ++i) {
        pass();
    }
    ASSERT_EQ(stats().clients, 0U);
    lawn_shm_client_t *const next = open_client();
    for (unsigned i = 0; i < 3; ++i) {
        lawn_shm_start(next, alloc(next), now_ + 1'000'000'000);
    }
    unsigned sum = 0;
    while (const unsigned work = pass()) {
        sum += work;
    }
    EXPECT_EQ(sum, 3U + 1U); // and the owner sees that there is a client
}

// One thread has released the timer, and another has marked it as posted, but
// not pushed it yet when the first rang.
TEST_F(ShmMemory, AReleaseWakesTheOwnerWhoeverPushesIt)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    const lawn_shm_timer_t other = alloc(client);
    lawn_shm_start(client, other, now_ + 1'000'000'000);
    pass();
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    memory_.slot(timer).flags = lawn::shm::released;
    EXPECT_TRUE(lawn_shm_start(client, timer, now_ + 2'000'000'000));
    pollfd fd = {lawn_engine_fd(engine_), POLLIN, 0};
    EXPECT_EQ(poll(&fd, 1, 0), 1);
    pass();
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_EQ(stats().timers, 1U);
}

// Another thread was about to post a start when the timer was released, and
// does it when the owner has let go of the timer already.
TEST_F(ShmMemory, ATimerThatIsPostedAgainIsNotFreeYet)
{
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_client_t *const other = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    const lawn_shm_timer_t others = alloc(other);
    lawn_shm_release(client, timer);
    pass();
    lawn_shm_start(client, timer, now_ + 10);
    lawn_shm_start(other, others, now_ + 10);
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_EQ(stats().timers, 2U) << "it is in the owner's list";
    pass();
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_EQ(stats().timers, 1U);
    EXPECT_EQ(memory_.slot(timer).flags, 0U);
    now_ += 10;
    pass();
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_TRUE(lawn_shm_next(other, &event));
}

// The client releases the timer while it expires, and the owner learns of that
// after messages that its budget has left over. By then the timer is due again.
TEST_F(ShmMemory, ATimerThatIsReleasedExpiresNoMore)
{
    static lawn_shm_client_t *client;
    static unsigned calls;
    calls = 0;
    params_.expired = [](void *, lawn_shm_timer_t timer, uint64_t, lawn_time_t,
                         lawn_time_t now) {
        ++calls;
        lawn_shm_release(client, timer);
        return now;
    };
    engine_params_.budget = 1;
    own();
    client = open_client();
    const lawn_time_t due = now_ + 100;
    lawn_shm_start(client, alloc(client), due);
    pass();
    for (unsigned i = 0; i < 3; ++i) {
        lawn_shm_start(client, alloc(client), due + 10'000);
    }
    now_ = due;
    for (unsigned i = 0; i < 6; ++i) {
        pass();
    }
    EXPECT_EQ(calls, 1U);
    lawn_histogram_t late;
    lawn_engine_query_lateness(engine_, &late);
    EXPECT_EQ(lawn_histogram_count(&late), 1U);
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_EQ(stats().timers, 3U);
}

// The slots of a client that writes nonsense do the owner no harm, nor others.
TEST_F(ShmMemory, WhatExpiresForNobodyIsLost)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t nobodys = alloc(client);
    const lawn_shm_timer_t beyond = alloc(client);
    const lawn_shm_timer_t good = alloc(client, 3);
    for (const lawn_shm_timer_t timer : {nobodys, beyond, good}) {
        lawn_shm_start(client, timer, now_ + 10);
    }
    memory_.slot(nobodys).client = 0;
    memory_.slot(beyond).client = params_.clients + 1;
    pass();
    now_ += 10;
    pass();
    lawn_shm_event_t event = {};
    ASSERT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.cookie, 3U);
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
}

// The client has cleared `fired` and is about to read the deadline. A start has
// expired meanwhile: it is in the list again, and its deadline is read now.
TEST_F(ShmMemory, AnEventThatWasReadWithTheOneBeforeIsNotToldAgain)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    lawn_shm_start(client, timer, now_);
    pass();
    pass();
    memory_.slot(timer).expired = LAWN_TIME_INFINITY;
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event));
    lawn_shm_start(client, timer, now_);
    pass();
    pass();
    EXPECT_TRUE(lawn_shm_next(client, &event));
}

TEST_F(ShmMemory, AnEngineMayHaveTwo)
{
    own();
    lawn_shm_t *other = nullptr;
    const std::string path = path_ + "2";
    ASSERT_EQ(lawn_shm_create(engine_, path.c_str(), &params_, &other),
              LAWN_OK);
    lawn_shm_client_t *client = nullptr;
    ASSERT_EQ(lawn_shm_open(path.c_str(), clock, this, &client), LAWN_OK);
    lawn_shm_destroy(shm_); // the first of them
    shm_ = nullptr;
    const lawn_shm_timer_t timer = alloc(client);
    EXPECT_TRUE(lawn_shm_start(client, timer, now_));
    pass();
    pass();
    lawn_shm_event_t event = {};
    EXPECT_TRUE(lawn_shm_next(client, &event));
    lawn_shm_close(client);
    lawn_shm_destroy(other);
    EXPECT_EQ(files(), 0U);
}

// A dead owner's file says how many FIFOs it had. Here the file is too small
// for that many clients, so the number is wrong, and nothing is removed by it.
TEST_F(ShmMemory, OfADeadOwnerMayCountTooManyClients)
{
    Header header = {};
    header.magic = lawn::shm::magic;
    header.owner = 1;
    header.epoch = 7;
    header.client_count = 5;
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(write(fd, &header, sizeof(header)), ssize_t{sizeof(header)});
    close(fd);
    const std::string other = path_ + ".7.5";
    ASSERT_EQ(mkfifo(other.c_str(), 0600), 0);
    own();
    EXPECT_EQ(try_to_open(), LAWN_OK);
    EXPECT_EQ(unlink(other.c_str()), 0);
}

// What a client has spoilt does not lead the owner beyond its memory.
TEST_F(ShmMemory, TheOwnerKeepsToItsOwnCounts)
{
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_client_t *const other = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    memory_.header->slot_count = most_slots;
    memory_.header->client_count = most_slots;
    lawn_shm_start(client, timer, now_);
    pass();
    EXPECT_EQ(stats().clients, 2U);
    EXPECT_EQ(stats().timers, 1U);
    lawn_shm_event_t event = {};
    pass();
    EXPECT_TRUE(lawn_shm_next(client, &event));
    lawn_shm_close(other);
    clients_.pop_back();
    pass();
    EXPECT_EQ(stats().clients, 1U);
}

TEST_F(ShmMemory, EventsThatAreNoListEnd)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    lawn_shm_event_t event = {};
    for (const uint32_t number : {params_.timers + 1, most_slots}) {
        memory_.client(1).fired = number;
        EXPECT_FALSE(lawn_shm_next(client, &event));
    }
    // One that leads beyond the slots, and one that leads back to itself.
    for (const uint32_t number : {most_slots, timer}) {
        lawn_shm_start(client, timer, now_);
        pass();
        pass();
        memory_.slot(timer).next_fired = number;
        EXPECT_TRUE(lawn_shm_next(client, &event));
        EXPECT_FALSE(lawn_shm_next(client, &event));
    }
}

TEST_F(ShmMemory, MessagesThatAreNoListEnd)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t first = alloc(client);
    const lawn_shm_timer_t second = alloc(client);
    pass();
    memory_.header->messages = params_.timers + 1;
    EXPECT_EQ(pass(), 0U);
    lawn_shm_start(client, first, now_ + 10);
    memory_.slot(first).next_message = params_.timers + 1;
    EXPECT_EQ(pass(), 1U);
    // One that leads back to itself.
    lawn_shm_start(client, second, now_ + 10);
    memory_.slot(second).next_message = second;
    EXPECT_LE(pass(), params_.timers);
    now_ += 10;
    pass();
    lawn_shm_event_t event = {};
    EXPECT_TRUE(lawn_shm_next(client, &event));
    EXPECT_TRUE(lawn_shm_next(client, &event));
    EXPECT_FALSE(lawn_shm_next(client, &event));
    // They come to an end when a client is swept, too, which has no budget.
    lawn_shm_start(client, first, now_ + 10);
    memory_.slot(first).next_message = first;
    lawn_shm_close(open_client());
    clients_.pop_back();
    pass();
    EXPECT_EQ(stats().clients, 1U);
}

} // namespace
