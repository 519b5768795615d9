// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the owner and its clients do, and what must come of it (shm_program.h).

#include "shm_program.h"

#include "system.h"

#include "shm/layout.h"

#include <lawn/shm.h>

using namespace explore;
using namespace explore::shm;

namespace
{

constexpr unsigned most_timers = 2;
constexpr pid_t owner_pid = 100;

class ShmProgram final : public Program
{
public:
    explicit ShmProgram(const ShmScenario &scenario) : scenario_(scenario)
    {
    }

    void set_up() override
    {
        use_one_processor(false);
        explorer().on_death([this](unsigned thread) {
            end_process(thread);
            if (scenario_.has(pid_is_used_again)) {
                use_pid_again(pid_of(0));
            }
        });
        be_process(owner_pid);
        lawn_engine_params_t params = {};
        params.lawn.allocator = allocator();
        require(lawn_engine_create(&params, &engine_) == LAWN_OK);
        lawn_shm_params_t sizes = {};
        sizes.timers = scenario_.has(one_timer) ? 1 : most_timers;
        sizes.clients = scenario_.has(one_place)     ? 1
                        : scenario_.has(four_places) ? 4
                                                     : 2;
        require(lawn_shm_create(engine_, "/shm", &sizes, &shm_) == LAWN_OK);
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            be_process(pid_of(i));
            if (scenario_.has(are_threads) && i != 0) {
                clients_[i] = clients_[0];
            } else if (is_open_at_first(i)) {
                require(lawn_shm_open("/shm", nullptr, nullptr, &clients_[i]) ==
                        LAWN_OK);
            }
        }
        be_process(owner_pid);
        lawn_engine_progress(engine_);
    }

    void begin() override
    {
        releases_ = 0;
        handed_over_ = {};
        owner_is_gone_ = false;
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            at_[i] = 0;
            is_open_[i] = is_open_at_first(i);
            for (Timer &timer : timers_[i]) {
                timer = {};
            }
            const bool may_die = i == 0 && scenario_.has(is_killed);
            const unsigned thread = explorer().add_thread(
                [this, i] { run(i); },
                may_die ? Explorer::End::killed : Explorer::End::itself);
            put_into_process(thread, pid_of(i));
            ended_[i] = false;
        }
        const unsigned thread = explorer().add_thread(
            [this] { run_owner(); }, scenario_.has(owner_closes)
                                         ? Explorer::End::itself
                                         : Explorer::End::never);
        put_into_process(thread, owner_pid);
    }

    // The owner sleeps. A client that was killed while it opened is found in a
    // later pass.
    void end() override
    {
        if (scenario_.has(owner_closes)) {
            explorer().expect(fifo_count() == 0, "a FIFO is left");
            return;
        }
        if (!scenario_.has(is_killed)) {
            expect_heard();
        }
        for (unsigned i = 0; i < 3; ++i) {
            pass_time(lawn_time_from_msec(2));
            lawn_engine_progress(engine_);
        }
        lawn_shm_stats_t stats;
        lawn_shm_query(shm_, &stats);
        unsigned clients = 0;
        unsigned timers = 0;
        unsigned deaths = 0;
        const size_t count =
            scenario_.has(are_threads) ? 1 : scenario_.clients.size();
        for (unsigned i = 0; i < count; ++i) {
            const bool is_open = ended_[i] && is_open_[i];
            clients += is_open;
            deaths += !ended_[i];
            for (const Timer &timer : timers_[i]) {
                timers += is_open && timer.number != 0;
            }
        }
        // One that has not said when it was born is taken for the other process
        // of its number. When that ends, it is found.
        const bool is_taken_for_another = scenario_.has(pid_is_used_again) &&
                                          !ended_[0] && !is_open_[0] &&
                                          memory().client(1).birth == 0;
        explorer().expect(is_taken_for_another || stats.clients == clients,
                          "clients at the end");
        // Who has released a timer need not have looked since.
        explorer().expect(stats.timers >= timers &&
                              stats.timers <= timers + releases_,
                          "timers at the end");
        explorer().expect(stats.deaths <= deaths, "deaths");
        explorer().expect(lawn_count(lawn_engine_lawn(engine_)) == 0,
                          "a timer is pending at the end");
    }

    uint64_t hash() const override
    {
        uint64_t hash = hash_of_system();
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            hash = mix(hash, at_[i] * 4 + is_open_[i] * 2 + ended_[i]);
            for (const Timer &timer : timers_[i]) {
                hash = mix(hash, timer.number);
                hash = mix(hash, timer.is_stopped ? 0 : timer.due);
                hash = mix(hash, timer.earlier);
                hash = mix(hash, timer.events);
            }
        }
        return hash;
    }

private:
    // The owner was woken for each release and each close.
    void expect_heard() const
    {
        explorer().expect(releases_ == 0 || (memory().header->messages &
                                             ~lawn::shm::asleep) == 0,
                          "a message at the end");
        for (unsigned i = 1; i <= memory().client_count; ++i) {
            explorer().expect(memory().client(i).is_closed == 0,
                              "a client that has closed at the end");
        }
    }

    struct Timer {
        lawn_shm_timer_t number;
        lawn_time_t due;     // of the latest start
        lawn_time_t earlier; // and of the one before
        bool is_stopped;     // in time: no event of it is to come
        unsigned events;     // of it
        unsigned starts;
    };

    pid_t pid_of(unsigned client) const
    {
        return scenario_.has(are_threads)
                   ? owner_pid + 1
                   : static_cast<pid_t>(owner_pid + 1 + client);
    }

    bool is_open_at_first(unsigned client) const
    {
        return !scenario_.has(opens) &&
               (client == 0 || !scenario_.has(one_place));
    }

    static lawn::shm::Memory memory()
    {
        auto *const header = static_cast<lawn::shm::Header *>(shared_file());
        return {header, 0, 0, header->client_count};
    }

    static bool has_place()
    {
        return memory().client(1).pid == 0 || memory().client_count > 1;
    }

    void run_owner()
    {
        if (scenario_.has(owner_closes)) {
            lawn_engine_progress(engine_);
            lawn_shm_destroy(shm_);
            owner_is_gone_ = true;
            return;
        }
        for (;;) {
            if (lawn_engine_progress(engine_) == 0 &&
                lawn_engine_wait(engine_, LAWN_TIME_INFINITY) == LAWN_OK) {
                pass_time(lawn_time_from_msec(1)); // or it spins at one time
            }
        }
    }

    void run(unsigned i)
    {
        for (const Op &op : scenario_.clients[i]) {
            explorer().end_operation(act(i, op));
            ++at_[i];
        }
        explorer().step("ends");
        ended_[i] = true;
    }

    // Threads of one client start the same timers.
    unsigned client_of(unsigned thread) const
    {
        return scenario_.has(are_threads) ? 0 : thread;
    }

    uint64_t act(unsigned i, const Op &op)
    {
        lawn_shm_client_t *const client = clients_[i];
        Timer &timer = timers_[client_of(i)][op.timer];
        if (op.what != Op::open && !is_open_[i]) {
            return 0;
        }
        switch (op.what) {
        case Op::open: {
            explorer().wait("a place", has_place);
            const lawn_status_t status =
                lawn_shm_open("/shm", nullptr, nullptr, &clients_[i]);
            explorer().expect(
                status == LAWN_OK ||
                    (status == LAWN_ERR_NO_ELEM && scenario_.has(owner_closes)),
                "a client cannot open");
            is_open_[i] = status == LAWN_OK;
            explorer().expect(
                !is_open_[i] ||
                    lawn_shm_is_open(clients_[i], lawn_shm_id(clients_[i])),
                "an id of nobody");
            break;
        }
        case Op::close:
            lawn_shm_close(client);
            is_open_[i] = false;
            break;
        case Op::alloc_again:
            while (lawn_shm_alloc(client, 7 + op.timer, &timer.number) !=
                   LAWN_OK) {
                explorer().end_operation(0);
                lawn_shm_wait(client, LAWN_TIME_INFINITY);
                take_all(i);
            }
            break;
        case Op::alloc:
            explorer().expect(
                lawn_shm_alloc(client, 7 + op.timer, &timer.number) == LAWN_OK,
                "no timer is free");
            explorer().memory().publish(explorer().current(), &handed_over_);
            break;
        case Op::start:
            start(client, &timer,
                  now() + lawn_time_from_sec(static_cast<double>(op.ttl)));
            break;
        case Op::stop:
            // One that comes too late finds an event.
            if (lawn_shm_stop(client, timer.number)) {
                explorer().expect(timer.events == 0, "stopped, and expired");
                timer.is_stopped = true;
            }
            break;
        case Op::release_in_start:
            explorer().wait("a start", [this, &timer] {
                return timer.number != 0 && is_pending(timer);
            });
            explorer().memory().learn(explorer().current(), handed_over_);
            [[fallthrough]];
        case Op::release:
            lawn_shm_release(client, timer.number);
            timer = {};
            ++releases_;
            break;
        case Op::wait:
            wait(i);
            break;
        }
        return timer.number;
    }

    void start(lawn_shm_client_t *client, Timer *timer, lawn_time_t due)
    {
        if (timer->number == 0) {
            explorer().wait("a timer", [timer] { return timer->number != 0; });
            explorer().memory().learn(explorer().current(), handed_over_);
        }
        // Of a time of its own, as an event is known by its deadline.
        timer->earlier = timer->due;
        timer->due = due + ++timer->starts;
        timer->is_stopped = false;
        timer->events = 0;
        const bool was_gone = owner_is_gone_;
        if (!lawn_shm_start(client, timer->number, timer->due)) {
            explorer().expect(scenario_.has(owner_closes),
                              "a start is refused");
            timer->is_stopped = true;
        } else {
            explorer().expect(!was_gone, "a start that nobody will see");
        }
    }

    // Of two threads' starts, the later one counts, whichever that is.
    bool is_pending(const Timer &timer) const
    {
        return memory().slot(timer.number).deadline != LAWN_TIME_INFINITY;
    }

    bool is_awaited(unsigned i) const
    {
        if (scenario_.has(are_threads)) {
            const Timer &timer = timers_[0][0];
            return timer.events == 0 || is_pending(timer);
        }
        for (const Timer &timer : timers_[i]) {
            if (timer.due != 0 && !timer.is_stopped && timer.events == 0) {
                return true;
            }
        }
        return false;
    }

    // Until everything has come.
    void wait(unsigned i)
    {
        if (scenario_.has(are_threads)) {
            explorer().wait("the other thread", [this] { return ended_[1]; });
        }
        for (;;) {
            take_all(i);
            if (!is_awaited(i)) {
                return;
            }
            explorer().end_operation(0);
            const lawn_status_t status =
                lawn_shm_wait(clients_[i], LAWN_TIME_INFINITY);
            if (status == LAWN_ERR_NO_ELEM && scenario_.has(owner_closes)) {
                return;
            }
            explorer().expect(status == LAWN_OK, "the owner is gone");
        }
    }

    void take_all(unsigned i)
    {
        lawn_shm_event_t event;
        while (lawn_shm_next(clients_[i], &event)) {
            Timer *found = nullptr;
            for (Timer &timer : timers_[i]) {
                found = timer.number == event.timer ? &timer : found;
            }
            explorer().expect(found != nullptr, "an event of no timer");
            explorer().expect(event.cookie ==
                                  7 + static_cast<unsigned>(found - timers_[i]),
                              "another cookie");
            expect_in_time(event.deadline, lawn_time_from_sec(1) - 1);
            if (scenario_.has(are_threads)) {
                explorer().expect(event.deadline == found->due ||
                                      event.deadline == found->earlier,
                                  "an event of no start");
                ++found->events;
                continue;
            }
            // One of an earlier start was replaced too late.
            explorer().expect(event.deadline <= found->due,
                              "an event of another start");
            if (event.deadline == found->due) {
                ++found->events;
                explorer().expect(found->events == 1, "an event came twice");
                explorer().expect(!found->is_stopped, "stopped, and expired");
            }
            explorer().end_operation(event.timer);
        }
    }

    const ShmScenario &scenario_;
    lawn_engine_t *engine_ = nullptr;
    lawn_shm_t *shm_ = nullptr;
    lawn_shm_client_t *clients_[2] = {};
    Timer timers_[2][most_timers] = {};
    unsigned at_[2] = {};
    bool ended_[2] = {};
    unsigned releases_ = 0;
    View handed_over_; // with the number of a timer, to another thread
    bool owner_is_gone_ = false;
    bool is_open_[2] = {};
};

} // namespace

std::unique_ptr<Program> explore::shm::make_program(const ShmScenario &scenario)
{
    return std::make_unique<ShmProgram>(scenario);
}
