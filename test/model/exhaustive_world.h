// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A lawn, a few timers and queues, and the model of them: for each timer
// whether it runs and its deadline, and for each queue a list of those that run
// in it, in the order of their starts. All of it, the program's clock included,
// is one region of memory, so that a state can be copied, compared and gone
// back to as bytes.

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
    start_at,     // with a target for a deadline
    enqueue,      // starts in a queue, which is made if there is none
    close,        // a queue
    stop,
    pause,
    skip,           // the clock goes on, and the lawn is not told
    advance,        // the clock goes on
    advance_behind, // as of the target, which may be older than the lawn's time
    finish, // the clock goes on, and advances until lawn_next() is in the
            // future
    endure, // likewise, for some time, with a tick before each advance
    settle,
    drain,
};

// A time. Where it is said of timers, and there is none: that of the clock.
enum class Target : uint8_t {
    now,
    tick,   // one on
    next,   // lawn_next()
    before, // a tick before the earliest deadline
    at,     // the earliest deadline
    after,  // a tick after
    last,   // the last deadline that is not never
    slot,   // the next multiple of Scenario.width
    wrap,   // 65 of these on
    far,    // Scenario.far on
    past,   // half of Scenario.far ago
    zero,   // the first tick of all
    sooner, // a tick before the deadline of the operation's timer
    later,  // Scenario.far after it
};

// What a callback of an advance or a drain does to a timer.
enum class Action : uint8_t {
    none,
    start,
    start_now,   // ttl 0
    start_later, // after the clock went Scenario.far on
    start_past,  // with a deadline that was half of Scenario.far ago
    enqueue,
    close, // the queue that is for enqueue
    stop,
    pause,
    drain,
};

// To its own timer, then to the next of the actors.
struct Reaction {
    Action self = Action::none;
    Action other = Action::none;
};

struct Op {
    Kind kind;
    uint8_t timer = 0;
    uint8_t which = 0; // TTL or queue; for a reaction, too
    Target target = Target::now;
    uint8_t limit = 0; // of timers touched
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
    std::vector<lawn_time_t> queues;      // their TTLs
    lawn_time_t clock = 1 << 16;          // at the beginning
    lawn_time_t far = 0;
    lawn_time_t width = 1; // of a slot that matters
    bool observed = false;
    bool is_new = false; // no timer has ever fired
};

// Where a timer can be.
enum Place {
    idle,
    filed,    // in the slot of its deadline
    rearmed,  // in a slot before it
    paused,   // in a slot
    due,      // at once
    deferred, // due, but not in the pass that runs
    queued,
    queue_paused,
    drained, // not handed over yet
    place_count,
};

// What states were met, for tests to show that they were.
struct Reached {
    uint64_t ops[4][place_count]; // start, stop, pause, enqueue of an actor
    uint64_t fired;
    uint64_t moved;       // touched by an advance, and not fired
    uint64_t late;        // a slot with timers for two of its turns
    uint64_t left;        // a round that is not done
    uint64_t stale;       // the bit of an empty slot
    uint64_t settled;     // with a `wake` after a slot's begin
    uint64_t empty_alarm; // of a queue without timers
    uint64_t early_alarm; // before the head's deadline
    uint64_t behind;      // advanced as of a time that was not the latest
    uint64_t waited;      // due, when an advance had ended
    std::bitset<lawn::class_count> classes; // with an actor in it
};

// A timer and its model: a line.
struct alignas(64) Entry {
    lawn_timer_t timer;   // first
    lawn_time_t deadline; // as lawn_timer_deadline() shall tell
    uint16_t next;        // of those that run in the queue, by start
    uint16_t prev;
    uint8_t queue; // or no_queue
    bool runs;
    bool is_deferred; // not due in this pass
    bool is_drained;  // to be handed over
};

constexpr uint16_t nobody = UINT16_MAX; // no timer in the list
constexpr unsigned most_queues = 2;
constexpr uint8_t no_queue = most_queues;

// A queue and its model.
struct alignas(64) QueueEntry {
    lawn::Queue memory; // first; zeros when it is not open
    bool is_open;
    uint16_t first; // of the list of those that run
    uint16_t last;
    unsigned running;
};

struct alignas(64) State {
    lawn_time_t clock;
    lawn_time_t seen; // the latest time that the lawn was told
    unsigned running;
    unsigned timers;
    QueueEntry queues[most_queues];
};

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
    void enqueue(unsigned timer, unsigned queue);
    void stop(unsigned timer);
    void pause(unsigned timer);
    void wait(lawn_time_t time);
    void advance(unsigned budget);

    // Calls are written to it as they are made; nullptr for none.
    void write_to(FILE *script);

    Image &image();
    Reached &reached();

private:
    static void *allocate(void *arg, size_t size);
    static void release(void *, void *memory);
    static void on_expired(lawn_timer_t *timer, lawn_time_t now);
    static void on_drained(lawn_timer_t *timer, lawn_time_t now);
    static void on_counted(const lawn_timer_t *timer, void *count);
    static void on_event(lawn_observer_t *observer, lawn_event_t event,
                         const lawn_timer_t *, lawn_time_t, lawn_time_t);

    // The model, and what is done to both.
    void expect(bool is_so, const char *otherwise);
    __attribute__((format(printf, 2, 3))) void write(const char *format, ...);
    void called(lawn_event_t event);
    Entry &entry_of(const lawn_timer_t *timer, unsigned *index);
    lawn_time_t time_of(Target target, unsigned timer) const;
    lawn_time_t ago(lawn_time_t time) const;
    void go_to(lawn_time_t clock);
    void see(lawn_time_t now);
    void link(unsigned i, uint8_t queue);
    void unlink(unsigned i);
    void start(unsigned i, lawn_time_t now, lawn_time_t ttl);
    void start_at(unsigned i, lawn_time_t deadline);
    void started(unsigned i, lawn_time_t deadline, uint8_t queue);
    void close(unsigned queue);
    void end(unsigned i, bool pause);
    void settle(unsigned max_touches);
    void drain();
    void react(unsigned i);
    void act(Action action, unsigned i);
    lawn_time_t earliest() const;

    // Advances.
    void advance_behind(lawn_time_t now, unsigned budget);
    void begin_pass(lawn_time_t now);
    void end_pass(lawn::Work work, unsigned budget, bool is_done);
    unsigned changed() const;
    unsigned length_of(unsigned queue) const;
    void finish(bool is_ticking);
    bool wait_for_due(unsigned budget, int *bound);

    // After an operation.
    void compare();
    void forget_remains();
    lawn::Lawn *lawn() const;
    const lawn_link_t *list_of(const lawn_timer_t *timer) const;
    Place place_of(unsigned i) const;
    void note();
    void note_op(unsigned op, unsigned i);

    static World *current_; // for callbacks, which get but a timer

    unsigned char *arena_;
    State *state_ = nullptr;
    Entry *entries_ = nullptr;
    lawn_t *lawn_ = nullptr;
    const Scenario *scenario_ = nullptr;
    Image image_;
    Reached reached_ = {};
    lawn_observer_t observer_;
    uint64_t told_[5] = {};  // by the observer, of each event
    uint64_t calls_[5] = {}; // that it had to tell of
    const char *failure_ = nullptr;
    FILE *script_ = nullptr;
    // During an operation:
    Op op_ = {};
    unsigned opening_ = 0; // the queue that is being made
    bool in_pass_ = false;
    bool in_drain_ = false;
    bool has_started_ = false; // something, in the pass
    lawn_time_t pass_ = 0;     // time of the advance
    unsigned fired_ = 0;
    std::vector<lawn_timer_t> before_; // the advance, all timers
    lawn_timer_t alarms_before_[most_queues] = {};
    unsigned lengths_before_[most_queues] = {}; // of queues
    std::vector<int> waits_; // the advances that a due timer has waited
};

} // namespace exhaustive

#endif
