// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An explorer of interleavings: runs a program of a few threads again and
// again, on fibers of one thread, until the accesses that they announce have
// come in every order. Each run repeats the decisions of one before, but for
// the last that was not tried in all ways: depth first, and nothing is
// restored.
//
// A run that comes to a state that is known is given up, as it would go on as
// the one before. A state is what the program hashes (all that its threads
// share, and all that its checks remember), the stores that are on their way,
// and of each thread what it has come to know since its last operation began.
// States are told apart by 64-bit hashes. So all schedules are covered, but
// only as many are run as there are ways into states; the rest are counted.
// There is no bound on preemptions.
//
// The memory model is that of x86 (TSO): sequential consistency, but what a
// thread puts goes through a queue of its own into memory, where others see it
// at any time from then on, in the order of the puts. The thread's loads see
// its own puts at once; its stores and read-modify-writes wait until the queue
// is empty. A swap that fails is a load only, as C11 has it. Stores that are
// not atomic are seen at once: in shared_ops.h, a read-modify-write that would
// wait for them comes before others may look.
//
// So of what C11 allows this covers all interleavings of what is sequentially
// consistent, and release stores that come late. It does not cover loads that
// pass each other or come late (the library's relaxed loads are of words that
// the thread alone changes, or may see late without harm), stores that others
// see in different orders (machines that are not multi-copy atomic), nor data
// races as such: an access that is not atomic happens together with the atomic
// one before it.

#ifndef LAWN_TEST_MODEL_SHARED_EXPLORE_H
#define LAWN_TEST_MODEL_SHARED_EXPLORE_H

#include "shared_explore_fiber.h"

#include <stdint.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace shared_explore
{

constexpr unsigned most_threads = 4;
constexpr unsigned nobody = most_threads; // no thread of the program: set-up

enum class Kind : uint8_t {
    load,
    put, // a store that may be late
    store,
    exchange,
    swap, // compare, and exchange if equal
    add,
    set,
    clear
};

struct Access {
    Kind kind;
    uint8_t size;
    void *at;
    uint64_t value;
    uint64_t expected; // of a swap
};

// `value` and then some more.
inline uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

// What is explored. All but run() is called between the steps of the threads.
class Program
{
public:
    virtual ~Program() = default;

    // Sets everything up anew; returns the number of threads.
    virtual unsigned begin() = 0;

    // On its fiber. It must own nothing that is to be destroyed.
    virtual void run(unsigned thread) = 0;

    // All threads have ended.
    virtual void end() = 0;

    // Of all that matters from now on.
    virtual uint64_t hash() const = 0;

    // Of what the thread may read and not announce.
    virtual uint64_t plain(unsigned thread) const = 0;

    // Of a thread that waits.
    virtual bool is_ready(unsigned thread) const = 0;

    // Who is about to access, in its turn.
    virtual void on_access(unsigned thread, const Access &access) = 0;

    // What a thread does now, to be told of when a put of it comes to memory.
    virtual uint64_t token(unsigned thread) const = 0;
    virtual void on_write(uint64_t token, const void *at, uint64_t was,
                          uint64_t value) = 0;

    virtual std::string describe(unsigned thread) const = 0;
    virtual std::string name_of(const void *at) const = 0;
    virtual std::string text_of(uint64_t value) const = 0;
};

struct Result {
    uint64_t runs = 0;
    uint64_t states = 0;  // with more than one way to go on
    uint64_t refused = 0; // runs that the program gave up
    double schedules = 0; // covered
    unsigned longest = 0; // in steps
    bool is_complete = false;
    std::vector<std::string> violations; // the first one found, if any
    std::vector<std::string> steps;      // that lead to it
};

class Explorer
{
public:
    explicit Explorer(Program *program) : program_(program)
    {
    }

    // Until a violation is found, or for `most_runs`. If it does not merge, it
    // runs each schedule.
    Result explore(uint64_t most_runs, bool merges);

    // By a thread of the program, or nobody. Returns what was there before.
    uint64_t access(const Access &access);

    // By a thread of the program that spins: it goes on when something is not
    // what it has loaded since its last pause.
    void pause();

    // By a thread of the program: not before it is ready.
    void wait();

    // An operation of the running thread has ended: what it has read does not
    // matter any more, but for what `hash` is of.
    void forget(uint64_t hash);

    // What the running thread knows from what it has read. Where it has read is
    // remembered already.
    void remember(uint64_t value);

    // Whether the running thread may pause from now on.
    void may_spin(bool may_spin);

    // A check has failed, or the run is against the rules of the program. Do
    // not return on a thread of the program.
    void fail(const char *what);
    void refuse();

    bool has_failed() const
    {
        return verdict_ == Verdict::failed;
    }

    // The running thread, or nobody.
    unsigned running() const
    {
        return running_;
    }

    // Whether the other threads have ended, and all their puts are in memory.
    bool is_alone(unsigned thread) const;

    uint64_t read(const void *at, unsigned size) const;

private:
    enum class Verdict : uint8_t { none, complete, known, refused, failed };

    struct Put {
        void *at;
        uint64_t value;
        uint64_t token;
        uint64_t under; // what is in memory, while the thread runs
        uint8_t size;
    };

    struct Load {
        const void *at;
        uint64_t value;
        unsigned size;
    };

    struct Thread {
        bool is_new;
        bool has_ended;
        bool may_spin;
        bool is_spinning;
        bool is_waiting;
        uint64_t history; // hash of what it has read
        std::vector<Put> puts;
        std::vector<Load> loads; // since its last pause
    };

    struct Node {
        uint64_t hash;
        unsigned choice;
        unsigned count;
        double schedules;
    };

    struct Choice {
        unsigned thread;
        bool is_flush;
    };

    static void enter();

    void run();
    bool go_back(double schedules);
    bool is_enabled(unsigned thread) const;
    bool has_changed(const Thread &thread) const;
    unsigned list_choices(Choice *choices) const;
    bool choose(Choice *choice);
    bool add_node(unsigned count);
    uint64_t hash() const;
    void schedule();
    void take_turn();
    void leave(Verdict verdict);
    void flush(unsigned thread);
    uint64_t read_own(const Thread &thread, const void *at,
                      unsigned size) const;
    uint64_t perform(const Access &access);
    void change(uint64_t token, void *at, unsigned size, uint64_t value);
    void see_own(Thread *thread);
    void see_memory(Thread *thread);
    void tell(const Access &access, uint64_t was);

    Program *program_;
    Fiber main_;
    Fiber fibers_[most_threads];
    Thread threads_[most_threads] = {};
    unsigned thread_count_ = 0;
    unsigned running_ = nobody;
    unsigned steps_ = 0;
    size_t depth_ = 0;
    uint64_t known_hash_ = 0;
    Verdict verdict_ = Verdict::none;
    bool merges_ = true;
    bool is_telling_ = false;
    const char *failure_ = nullptr;
    std::vector<Node> nodes_; // the decisions of the run
    std::unordered_map<uint64_t, double> known_;
    Result result_;
};

} // namespace shared_explore

#endif
