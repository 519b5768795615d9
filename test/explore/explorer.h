// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Explores programs of a few threads that run the library's own objects,
// compiled for ThreadSanitizer but linked with tsan.cc, which tells each of
// their accesses. A program runs again and again, on fibers of one thread,
// until its steps have come in every order, and each load has had every value
// that memory.h allows: depth first, nothing is restored.
//
// A step is an atomic access, a call that waits (a mutex, a thread's end,
// epoll) or one that wakes, and all that the thread does until its next one.
// What is not atomic is no step: it must not matter when it happens, and
// memory.h reports a data race if it does.
//
// A run that comes to a state that is known is given up. A state is all of the
// memory, what each thread knows of it, and all that each thread has read since
// its latest operation began.

#ifndef LAWN_TEST_EXPLORE_EXPLORER_H
#define LAWN_TEST_EXPLORE_EXPLORER_H

#include "fiber.h"
#include "memory.h"

#include <limits.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace explore
{

class Program
{
public:
    virtual ~Program() = default;

    // Makes what each run begins with, once. The memory (Explorer::memory(),
    // and variables of the library's own) is then the same before each run, and
    // the threads that it has added begin with each.
    virtual void set_up() = 0;
    // Before each run: sets what is the program's own, and adds threads.
    virtual void begin() = 0;
    // After each run whose threads have all ended.
    virtual void end() = 0;
    // Of what the program remembers to check later.
    virtual uint64_t hash() const
    {
        return 0;
    }
    // A thread has stored a value, by an atomic access.
    virtual void on_store(const void *, uint64_t)
    {
    }
    // An assertion of the library has failed: is that a mistake of the thread
    // that runs, which no user makes?
    virtual bool is_misuse() const
    {
        return false;
    }
};

struct Result {
    uint64_t runs = 0;
    uint64_t states = 0;
    uint64_t steps = 0;
    uint64_t stale = 0; // loads that had more than one value to choose from
    unsigned longest = 0;
    bool is_complete = false; // within the limits
    std::string violation;    // the first one found, or ""
    std::vector<std::string> steps_to_it;

    std::string report() const;  // of the violation
    std::string summary() const; // of what was explored
};

struct Limits {
    uint64_t most_runs = 1'000'000;
    unsigned most_steps = 2000; // of one run
    unsigned most_back = 3;     // values older than the newest
    // How often a run takes the turn from a thread that could go on and has not
    // waited, paused or ended.
    unsigned most_preemptions = UINT_MAX;
    unsigned most_old = UINT_MAX; // loads of another value than the newest
    unsigned most_deaths = 1;
};

// Of the tests, by the threads that there are: two are explored further than
// three. More with LAWN_TEST_FULL.
Limits usual_limits(unsigned threads);

enum class Order : uint8_t { relaxed, acquire, release, acq_rel, seq_cst };

// A place in the code that makes an atomic access.
struct Site {
    bool loads = false;
    bool stores = false;
    Order order = Order::relaxed;
};

// What is wrong with the accesses of some places.
struct Fault {
    enum Kind {
        none,
        left_out, // nothing is stored
        stale,    // what is loaded is the value before the newest
        weaker,   // the order
        later     // a store comes after the next store or call of the system
    };
    Kind kind = none;
    std::set<const void *> places;
};

// Of the program that is explored now. Library code finds it by explorer().
class Explorer
{
public:
    Explorer();

    Result explore(Program *program, const Limits &limits);

    // ---- For programs
    Memory &memory()
    {
        return memory_;
    }
    // How it ends: by itself, or also by being killed before any of its steps,
    // or never, and it need not be done when all others are.
    enum class End : uint8_t { itself, killed, never };
    unsigned add_thread(std::function<void()> run, End end = End::itself);
    // Calls it when a thread is killed.
    void on_death(std::function<void(unsigned thread)> call)
    {
        on_death_ = std::move(call);
    }
    // An operation of the running thread is over, and nothing of it matters any
    // more but `result`.
    void end_operation(uint64_t result);
    void expect(bool holds, const char *what);
    // The run is given up: no user does what its threads do.
    [[noreturn]] void refuse();

    // ---- For what stands below the library (tsan.cc, system.cc)
    // pause(), nap(), step(), learned() and end_operation() do nothing if no
    // thread runs.
    bool is_running() const // one of the threads runs
    {
        return current_ != nobody;
    }
    unsigned current() const
    {
        return current_;
    }
    uint64_t load(void *at, unsigned size, Order order, const void *pc);
    void store(void *at, unsigned size, uint64_t value, Order order,
               const void *pc);
    // Stores `make` of the old value, which it returns.
    uint64_t modify(void *at, unsigned size, Order order, const void *pc,
                    uint64_t (*make)(uint64_t was, uint64_t operand),
                    uint64_t operand);
    bool swap(void *at, unsigned size, uint64_t *expected, uint64_t value,
              Order order, Order failure, bool is_weak, const void *pc);
    void read(const void *at, size_t size, const void *pc);
    void write(const void *at, size_t size, const void *pc);
    // The thread spins: it goes on when something that it has loaded since its
    // last pause has changed, or it has not seen the newest.
    void pause();
    // The thread goes on when each one that can, and that does not nap, too,
    // has taken a step.
    void nap();
    // The thread waits until `is_ready`. `what` is for the report of a hang.
    void wait(const char *what, std::function<bool()> is_ready);
    // A step of any other kind, which changes something or only looks.
    void step(const char *what, bool changes = true);
    unsigned choose(unsigned count);
    unsigned choose_value(unsigned count);
    void learned(uint64_t value); // that decides what the thread does
    View &view()
    {
        return memory_.view_of(current_);
    }
    [[noreturn]] void violate(const std::string &what);
    [[noreturn]] void assertion_failed(const char *what);
    // What may make a thread ready when none is: time goes by. Returns false if
    // it cannot.
    void on_idle(std::function<bool()> idle)
    {
        idle_ = std::move(idle);
    }

    static constexpr unsigned nobody = most_threads;

    // ---- For faults
    // Each place in the code that was reached since sites were forgotten.
    const std::map<const void *, Site> &sites() const
    {
        return sites_;
    }
    void forget_sites()
    {
        sites_.clear();
    }
    void set_fault(const Fault &fault)
    {
        fault_ = fault;
    }
    // Steps of all runs, those of this one included.
    uint64_t all_steps() const
    {
        return result_.steps + step_count_;
    }
    std::string describe_hang() const;

private:
    struct Polled {
        unsigned location;
        uint32_t age;
        const void *pc;
    };
    struct Delayed { // a store that comes later
        void *at = nullptr;
        unsigned size = 0;
        uint64_t value = 0;
        Order order = Order::relaxed;
        const void *pc = nullptr;
        bool is_due = false; // that step is over
    };
    struct Thread {
        std::function<void()> run;
        Fiber fiber;
        End end = End::itself;
        bool has_ended = false;
        bool was_killed = false;
        uint64_t learned = 0; // in this operation
        // What it is about to do.
        const char *what = "";
        const void *at = nullptr;
        const void *pc = nullptr;
        std::function<bool()> ready; // empty: it is
        bool is_spinning = false;
        unsigned rounds = 0; // of the loop, with no news
        bool naps = false;
        unsigned nap_waits_for = 0; // threads, as bits
        std::vector<Polled> polled; // loads since it has stored or paused
        Delayed delayed;
        std::vector<char> locals;
    };
    struct Choice {
        uint16_t count;
        uint16_t taken;
    };

    struct Step { // of the run, for its report
        unsigned thread;
        const char *what;
        const void *at;
        uint64_t value;
        const void *pc;
        unsigned back;
    };

    void set_up();
    void run_once();
    bool is_over() const;
    void choose_death();
    void pick_next();
    static void entry();
    void arrive(const char *what, const void *at, const void *pc);
    bool is_ready(const Thread &thread) const;
    bool let_spinner_go_on();
    bool has_napped(const Thread &thread) const;
    bool is_known(uint64_t state);
    bool is_shared(const void *at);
    bool has_news(const Thread &thread) const;
    bool backtrack();
    uint64_t hash();
    void note(const char *what, const void *at, uint64_t value, const void *pc,
              unsigned back);
    void note_load(const Location &location, const void *pc);
    void check(const void *at, size_t size, bool writes, bool is_atomic,
               const void *pc);
    bool has_fault(Fault::Kind kind, const void *pc) const;
    Order order_of(Order order, const void *pc);
    void store_now(void *at, unsigned size, uint64_t value, Order order,
                   const void *pc);
    void has_stored(const void *at, uint64_t value);
    void store_delayed();
    void store_due();
    [[noreturn]] void leave_run();
    std::vector<std::string> report() const;

    Memory memory_;
    Program *program_ = nullptr;
    Limits limits_;
    Result result_;
    std::vector<Choice> path_;
    size_t depth_ = 0;
    std::unordered_map<uint64_t, unsigned> known_; // by how many preemptions
    std::vector<std::function<void()>> first_threads_; // of set_up()
    std::vector<std::unique_ptr<Thread>> threads_;
    unsigned thread_count_ = 0;
    unsigned current_ = nobody;
    unsigned step_count_ = 0;
    unsigned preemptions_ = 0;
    unsigned old_ = 0;       // loads so far of another value than the newest
    bool gives_way_ = false; // the thread at this step
    std::function<bool()> idle_;
    std::function<void(unsigned)> on_death_;
    unsigned deaths_ = 0;
    bool is_done_ = false; // the run came to its end
    std::vector<Step> steps_;
    std::unordered_map<const void *, uint8_t> users_; // bits of threads
    bool begins_anew_ = false;
    Fault fault_;
    std::map<const void *, Site> sites_;
    Fiber main_;
};

Explorer &explorer();

} // namespace explore

#endif
