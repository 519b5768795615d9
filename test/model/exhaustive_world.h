// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A lawn, a few timers and the model of both: for each timer whether it runs,
// its TTL and deadline, and a list of those that run in the order of their
// starts. All of it, the program's clock included, is one region of memory, so
// that a state can be copied, compared and gone back to as bytes.

#ifndef LAWN_TEST_MODEL_EXHAUSTIVE_WORLD_H
#define LAWN_TEST_MODEL_EXHAUSTIVE_WORLD_H

#include "exhaustive_image.h"

#include "timer/lawn_impl.h"

#include <stdio.h>

#include <bitset>
#include <functional>
#include <string>
#include <vector>

namespace exhaustive
{

enum class Kind : uint8_t {
    start,        // or re-arm
    start_behind, // the same, by a clock that went back to 0
    stop,
    pause,
    skip,    // the clock goes on, and the lawn is not told
    advance, // the clock goes on
    finish,  // likewise, and advances until lawn_next() is in the future
    settle,
    drain,
};

// Where the clock goes; where it stands, when there is no such time.
enum class Target : uint8_t {
    now,
    tick,   // one on
    next,   // lawn_next()
    before, // a tick before the earliest deadline
    at,     // the earliest deadline
    after,  // a tick after
    last,   // the last deadline that is not never
    far,    // Scenario.far on
};

// What a callback of an advance or a drain does to a timer.
enum class Deed : uint8_t {
    none,
    start,
    start_now,   // ttl 0
    start_later, // after the clock went Scenario.far on
    stop,
    pause,
    drain,
};

// To its own timer, then to the next of the actors.
struct Reaction {
    Deed self = Deed::none;
    Deed other = Deed::none;
};

struct Op {
    Kind kind;
    uint8_t timer = 0;
    uint8_t ttl = 0; // which; for a reaction, too
    Target target = Target::now;
    uint8_t limit = 0; // of callbacks, or of moves to settle
    Reaction reaction = {};
};

class World;

struct Scenario {
    std::string name;
    unsigned actors; // the timers that operations are on
    std::vector<lawn_time_t> ttls;
    std::vector<Op> alphabet;
    unsigned depth;
    std::function<void(World &)> prepare; // may be empty
    lawn_time_t clock = 1 << 16;          // at the beginning
    lawn_time_t far = 0;
    unsigned max_moves = 0; // of an advance
    bool observed = false;
};

// What states were met, for tests to show that they were.
struct Reached {
    uint64_t ops[3][8];    // start, stop, pause of an actor: where it was
    uint64_t in_single[4]; // actors in queues, by Where
    uint64_t in_class[4];
    uint64_t coarse;    // in a queue whose steps are longer than a tick
    uint64_t straight;  // started into the tree, its queue being too old
    uint64_t split;     // natives of one TTL in a single and in a class
    uint64_t last_turn; // started when there were no more turns
    uint64_t crowded;   // operations on a tree that is too large
    uint64_t fired;
    std::bitset<lawn::class_count> classes; // with an actor in their queue
};

// A timer and its model: a line.
struct alignas(64) Entry {
    lawn_timer_t timer; // first
    lawn_time_t ttl;
    lawn_time_t deadline; // as lawn_timer_deadline() shall tell
    uint16_t next;        // of those that run, by start
    uint16_t prev;
    bool runs;
    bool deferred; // not due in this pass
    bool turnless; // among those that were started after the last turn
    bool drained;  // to be handed over
};

struct alignas(64) State {
    lawn_time_t clock;
    lawn_time_t seen; // the latest time that the lawn was told
    uint64_t starts;  // at that time, up to the last turn
    uint16_t first;   // of the list of those that run
    uint16_t last;
    unsigned running;
    unsigned timers;
};

constexpr uint16_t nobody = UINT16_MAX; // no timer in the list
constexpr uint64_t last_turn = (uint64_t{1} << 21) - 1;

class World
{
public:
    World();
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    // Makes a lawn and timers anew.
    void open(const Scenario &scenario);

    // nullptr, or what is wrong.
    const char *apply(const Op &op);
    const char *check();

    // For what prepares a scenario: another timer, its number; what is done to
    // it; the passing of time; an advance.
    unsigned add();
    void start(unsigned timer, lawn_time_t ttl);
    void stop(unsigned timer);
    void wait(lawn_time_t time);
    void advance(unsigned budget);
    // Starts a timer until only so many turns of this tick are left.
    void use_up_turns(unsigned timer, unsigned left);
    // Takes the places of a TTL that are free with timers that never fire, so
    // that it has to use its class.
    void block(lawn_time_t ttl);

    // Calls are written to it as they are made; nullptr for none.
    void write_to(FILE *script);

    lawn::Lawn *lawn() const;
    Image &image();
    Reached &reached();

private:
    static void *allocate(void *arg, size_t size);
    static void release(void *, void *);
    static void on_expired(lawn_timer_t *timer, lawn_time_t now);
    static void on_drained(lawn_timer_t *timer, lawn_time_t now);
    static void on_event(lawn::Observer *observer, lawn::Event event,
                         const lawn_timer_t *, lawn_time_t, lawn_time_t);

    void expect(bool is_so, const char *otherwise);
    __attribute__((format(printf, 2, 3))) void write(const char *format, ...);
    Entry &entry_of(lawn_timer_t *timer, unsigned *index);
    lawn_time_t target_of(Target target) const;
    void go_to(lawn_time_t clock);
    void see(lawn_time_t now);
    void link(unsigned i);
    void unlink(unsigned i);
    void start_at(unsigned i, lawn_time_t now, lawn_time_t ttl);
    void end(unsigned i, bool pause);
    void advance_to_clock(unsigned budget);
    void finish();
    void settle(unsigned max_moves);
    void drain();
    void react(unsigned i);
    void act(Deed deed, unsigned i);
    bool is_first_of_its_ttl(unsigned i) const;
    lawn_time_t earliest() const;
    void compare();
    void note(unsigned i);
    void note_op(unsigned op, unsigned i);

    static World *current_; // for callbacks, which get but a timer

    unsigned char *arena_;
    State *state_ = nullptr;
    Entry *entries_ = nullptr;
    lawn_t *lawn_ = nullptr;
    const Scenario *scenario_ = nullptr;
    Image image_;
    Reached reached_ = {};
    lawn::Observer observer_;
    uint64_t told_[5] = {};  // by the observer, of each event
    uint64_t calls_[5] = {}; // that it had to tell of
    const char *failure_ = nullptr;
    FILE *script_ = nullptr;
    // During an operation:
    Op op_ = {};
    bool in_pass_ = false;
    bool in_drain_ = false;
    lawn_time_t pass_ = 0; // time of the advance
    unsigned fired_ = 0;
};

} // namespace exhaustive

#endif
